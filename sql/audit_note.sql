-- audit_note: note what a command does that is no single statement.
--
--   $1 text      actor
--   $2 text      action
--   $3 text      subject
--   $4 text      detail, a JSON object

INSERT INTO postrider.audit (actor, action, subject, detail)
VALUES ($1, $2, $3, $4::text::jsonb);
