SELECT
  "job_id" AS "job_id",
  CAST("end_time" AS DATE) AS "day"
FROM jobs
WHERE ("queue" IN ($1, $2, $3, $4, $5))
  AND ("processing_type" IS NULL OR NOT (lower("processing_type") LIKE lower($6) ESCAPE '!' OR lower("processing_type") = lower($7) OR starts_with(lower("processing_type"), lower($8)) OR lower("processing_type") LIKE lower($9) ESCAPE '!'))
-- $1: "' OR 1=1 --"
-- $2: '%'
-- $3: '_'
-- $4: '\\'
-- $5: '"; DROP TABLE jobs; --'
-- $6: '100!%%!_!!%'
-- $7: 'plain'
-- $8: 'pre'
-- $9: "%'; --%"
