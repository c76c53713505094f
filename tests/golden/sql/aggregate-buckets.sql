SELECT
  CAST("end_time" AS DATE) AS "day",
  "task_id" AS "task_id",
  CASE WHEN "cores" > 1 THEN 'multi' WHEN "cores" = 1 THEN 'single' END AS "core_class",
  "queue" AS "queue",
  "cpu_raw" AS "cpu_raw",
  "processing_type" AS "processing_type",
  count(*) AS "n_jobs",
  CAST(sum("events") AS DOUBLE) AS "events",
  sum(CAST("events" AS DOUBLE) * CAST("events" AS DOUBLE)) AS "events_sq",
  sum("cpu_s") AS "cpu_s",
  sum("cpu_s" * "cpu_s") AS "cpu_s_sq",
  sum(CAST("events" AS DOUBLE) * "cpu_s") AS "events_cpu_s",
  sum("wall_s") AS "wall_s",
  sum(("wall_s" * CAST("cores" AS DOUBLE))) AS "core_s",
  sum(("cpu_s" / CAST(nullif("events", 0) AS DOUBLE))) AS "cpe_sum",
  sum(("cpu_s" / CAST(nullif("events", 0) AS DOUBLE)) * ("cpu_s" / CAST(nullif("events", 0) AS DOUBLE))) AS "cpe_sq"
FROM jobs
WHERE "end_time" >= $14
  AND "end_time" < $15
  AND ("state" IS NULL OR ("state" = $1))
  AND ("events" >= $2)
  AND ("cores" >= $3)
  AND ("wall_s" > $4 AND "wall_s" < $5)
  AND (("cpu_s" / nullif("wall_s" * CAST("cores" AS DOUBLE), 0)) > $6 AND ("cpu_s" / nullif("wall_s" * CAST("cores" AS DOUBLE), 0)) < $7)
  AND ("processing_type" IS NULL OR NOT (lower("processing_type") = lower($8) OR lower("processing_type") = lower($9) OR starts_with(lower("processing_type"), lower($10)) OR starts_with(lower("processing_type"), lower($11)) OR starts_with(lower("processing_type"), lower($12)) OR starts_with(lower("processing_type"), lower($13))))
  AND ("task_id" IS NOT NULL)
GROUP BY 1, 2, 3, 4, 5, 6
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
