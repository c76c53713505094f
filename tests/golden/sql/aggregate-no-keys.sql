SELECT
  count(*) AS "n_jobs"
FROM jobs
