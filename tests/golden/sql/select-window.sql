SELECT
  CASE WHEN "cores" > 1 THEN 'multi' WHEN "cores" = 1 THEN 'single' END AS "core_class",
  ("cpu_s" / nullif("wall_s" * CAST("cores" AS DOUBLE), 0)) AS "efficiency"
FROM jobs
WHERE "end_time" >= $1
  AND "end_time" < $2
-- $1: datetime.datetime(2018, 8, 1, 0, 0)
-- $2: datetime.datetime(2018, 9, 1, 0, 0)
