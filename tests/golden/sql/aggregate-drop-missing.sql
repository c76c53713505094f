SELECT
  count(*) AS "n_jobs"
FROM jobs
WHERE ("user" IS NOT NULL AND ("user" IS NULL OR NOT (starts_with(lower("user"), lower($1)))))
  AND ("project" IS NULL OR ("project" = $2))
-- $1: 'a'
-- $2: 'x'
