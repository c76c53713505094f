WITH judged AS (
SELECT
  CAST("end_time" AS DATE) AS day,
  ("user" IS NOT NULL AND ("user" IS NULL OR NOT (starts_with(lower("user"), lower($1))))) AS keep_1,
  ("project" IS NULL OR ("project" = $2)) AS keep_2,
  "project" IS NULL AS unknown_0
FROM jobs
),
ruled AS (
SELECT
  day,
  CASE WHEN keep_1 IS NOT TRUE THEN 1 WHEN keep_2 IS NOT TRUE THEN 2 ELSE 0 END AS rule,
  unknown_0
FROM judged
)
SELECT
  day,
  rule,
  count(*) AS n_jobs,
  count(*) FILTER (WHERE rule = 0 AND unknown_0)
FROM ruled
GROUP BY 1, 2
-- $1: 'a'
-- $2: 'x'
