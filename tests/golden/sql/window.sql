WHERE "end_time" >= $1
  AND "end_time" < $2
-- $1: datetime.datetime(2018, 8, 1, 0, 0)
-- $2: datetime.datetime(2018, 9, 1, 0, 0)
