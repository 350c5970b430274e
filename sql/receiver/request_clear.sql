-- request_clear: forget everything.
--
-- Returns nothing.

TRUNCATE receiver.request, receiver.effect;
