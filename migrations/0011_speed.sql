-- 0011_speed: updates of the hot path stay on their pages.
--
-- A delivery is updated once, as a rule: when it is over.  Where many are accepted
-- before the first is sent, a page has to hold both versions of all its rows, or
-- the update pays for four index entries.

ALTER TABLE postrider.delivery SET (fillfactor = 50);
