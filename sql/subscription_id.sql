-- subscription_id: a fresh id, which the secret is bound to before it is kept.

SELECT nextval('postrider.subscription_id_seq') AS id;
