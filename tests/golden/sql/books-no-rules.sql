WITH judged AS (
SELECT
  CAST("end_time" AS DATE) AS day
FROM jobs
),
ruled AS (
SELECT
  day,
  0 AS rule
FROM judged
)
SELECT
  day,
  rule,
  count(*) AS n_jobs
FROM ruled
GROUP BY 1, 2
