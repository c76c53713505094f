WITH judged AS (
SELECT
  CAST("end_time" AS DATE) AS day,
  ("state" IS NULL OR ("state" = $1)) AS keep_1,
  ("events" >= $2) AS keep_2,
  ("cores" >= $3) AS keep_3,
  ("wall_s" > $4 AND "wall_s" < $5) AS keep_4,
  (("cpu_s" / nullif("wall_s" * CAST("cores" AS DOUBLE), 0)) > $6 AND ("cpu_s" / nullif("wall_s" * CAST("cores" AS DOUBLE), 0)) < $7) AS keep_5,
  ("processing_type" IS NULL OR NOT (lower("processing_type") = lower($8) OR lower("processing_type") = lower($9) OR starts_with(lower("processing_type"), lower($10)) OR starts_with(lower("processing_type"), lower($11)) OR starts_with(lower("processing_type"), lower($12)) OR starts_with(lower("processing_type"), lower($13)))) AS keep_6,
  ("task_id" IS NOT NULL) AS keep_7,
  "state" IS NULL AS unknown_0
FROM jobs
WHERE "end_time" >= $14
  AND "end_time" < $15
),
ruled AS (
SELECT
  day,
  CASE WHEN keep_1 IS NOT TRUE THEN 1 WHEN keep_2 IS NOT TRUE THEN 2 WHEN keep_3 IS NOT TRUE THEN 3 WHEN keep_4 IS NOT TRUE THEN 4 WHEN keep_5 IS NOT TRUE THEN 5 WHEN keep_6 IS NOT TRUE THEN 6 WHEN keep_7 IS NOT TRUE THEN 7 ELSE 0 END AS rule,
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
-- $1: 'finished'
-- $2: 1
-- $3: 1
-- $4: 60.0
-- $5: 2592000.0
-- $6: 0.0
-- $7: 2.0
-- $8: 'merge'
-- $9: 'pmerge'
-- $10: 'panda'
-- $11: 'ganga'
-- $12: 'hammercloud'
-- $13: 'gangarobot'
-- $14: datetime.datetime(2018, 8, 1, 0, 0)
-- $15: datetime.datetime(2018, 9, 1, 0, 0)
