WITH judged AS (
SELECT
  CAST("end_time" AS DATE) AS day
FROM jobs
WHERE (("queue" IN ($1, $2)) OR ("queue" IS NULL))
  AND ("user" IS NOT NULL)
  AND (("cpu_s" / nullif("wall_s" * CAST("cores" AS DOUBLE), 0)) >= $3 AND ("cpu_s" / nullif("wall_s" * CAST("cores" AS DOUBLE), 0)) <= 'Infinity'::DOUBLE)
  AND ("events" > $4 AND "events" <= $5)
  AND ("cores" = $6)
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
-- $1: 'CERN'
-- $2: 'BNL'
-- $3: 0.5
-- $4: 0
-- $5: 100
-- $6: 8
