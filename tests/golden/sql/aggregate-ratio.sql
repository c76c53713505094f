SELECT
  "queue" AS "queue",
  count(*) AS "jobs",
  sum("cpu_s") FILTER (WHERE "wall_s" IS NOT NULL AND "cores" IS NOT NULL) AS "cpu_s",
  sum(("wall_s" * CAST("cores" AS DOUBLE))) FILTER (WHERE "cpu_s" IS NOT NULL) AS "core_s",
  CAST(sum("events") AS DOUBLE) AS "events",
  min("end_time") AS "first",
  max(CAST("end_time" AS DATE)) AS "last_day"
FROM jobs
WHERE (("queue" IN ($1, $2)) OR ("queue" IS NULL))
  AND ("user" IS NOT NULL)
  AND (("cpu_s" / nullif("wall_s" * CAST("cores" AS DOUBLE), 0)) >= $3 AND ("cpu_s" / nullif("wall_s" * CAST("cores" AS DOUBLE), 0)) <= 'Infinity'::DOUBLE)
  AND ("events" > $4 AND "events" <= $5)
  AND ("cores" = $6)
GROUP BY 1
-- $1: 'CERN'
-- $2: 'BNL'
-- $3: 0.5
-- $4: 0
-- $5: 100
-- $6: 8
