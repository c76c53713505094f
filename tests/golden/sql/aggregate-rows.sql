SELECT
  "level" AS "level",
  "site_guessed" AS "site_guessed",
  count(*) AS "n",
  sum("k" * CAST("n_jobs" AS DOUBLE)) AS "weighted",
  CAST(sum("n_jobs") FILTER (WHERE "k" IS NOT NULL) AS DOUBLE) AS "jobs"
FROM "factors"
WHERE "window_end" >= $1
  AND "window_end" < $2
  AND ("status" = $3)
  AND ("n_jobs" >= $4)
GROUP BY 1, 2
-- $1: datetime.datetime(2018, 8, 1, 0, 0)
-- $2: datetime.datetime(2018, 9, 1, 0, 0)
-- $3: 'ok'
-- $4: 50
