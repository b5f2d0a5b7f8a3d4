-- Guarantees: the number of lines of the page that the ledger has for the same document and not from this run (?1).
SELECT count(*)
FROM sqlwriter_adopt AS s CROSS JOIN sqlwriter_ledger AS l
WHERE
    l.detail_id = s.detail_id AND l.version_us = s.version_us AND l.document_key = s.document_key AND l.write_id <> ?1;
