SELECT "name", "k"
FROM "factors"
WHERE ("level" = $1)
  AND ("k" > $2 AND "k" <= 'Infinity'::DOUBLE)
  AND ("site_guessed" = $3)
  AND ("name" IS NULL OR NOT (starts_with(lower("name"), lower($4))))
-- $1: 'queue'
-- $2: 1.5
-- $3: False
-- $4: 'A'
