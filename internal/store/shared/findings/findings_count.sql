-- How many findings of each class are open and accepted, and when the oldest was opened.
SELECT f.class, f.state, COUNT(*) AS findings, MIN(f.first_seen) AS first_seen
FROM {{.Finding}} AS f
WHERE f.sys_name = @sys_name AND f.state IN ('open', 'accepted')
GROUP BY f.state, f.class
ORDER BY f.class;
