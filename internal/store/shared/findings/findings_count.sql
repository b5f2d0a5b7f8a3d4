-- How many findings each class has, and when the oldest was seen first.
SELECT f.class, COUNT(*) AS findings, MIN(f.first_seen) AS first_seen
FROM {{.Prefix}}finding AS f
WHERE f.sys_name = @sys_name AND f.sure = 1
GROUP BY f.class
ORDER BY f.class;
