-- schema_rights: what the programs' roles may not do, and have to.
--
-- A script that needs no right of its own.  Returns one row a missing grant, as
-- the statement that makes up for it.  Roles and relations that do not exist
-- are left out: others look for those.

WITH wanted (role, privilege, columns, relations) AS (
    VALUES
        ('postrider_ingest', 'SELECT', '{}'::text[],
         '{schema_migration,tenant,api_key,subscription,subscription_pattern,'
         'subscription_test,turn,lane,event,delivery,attempt,dead_letter,replay,replay_job,audit,'
         'history,history_count,history_progress,history_reach}'
         ::text[]),
        ('postrider_ingest', 'INSERT', '{}',
         '{subscription,subscription_pattern,subscription_secret,turn,lane,'
         'event,delivery,other_attempt,replay,replay_job}'),
        ('postrider_ingest', 'INSERT',
         '{subscription_id,tenant_id,event_id,body}', '{subscription_test}'),
        ('postrider_ingest', 'UPDATE',
         '{asked_at,expires_at,event_id,body,taken_by,finished_at,started_at,'
         'duration_us,status,ended,remote,reason,dns_us,connect_us,tls_us,'
         'wait_us,receive_us,headers,excerpt}', '{subscription_test}'),
        ('postrider_ingest', 'INSERT', '{name}', '{tenant}'),
        ('postrider_ingest', 'INSERT',
         '{tenant_id,role,name,hash,expires_at}', '{api_key}'),
        ('postrider_ingest', 'UPDATE', '{revoked_at,last_used_at}',
         '{api_key}'),
        ('postrider_ingest', 'INSERT',
         '{actor,tenant_id,action,subject,detail}', '{audit}'),
        ('postrider_ingest', 'SELECT',
         '{id,subscription_id,kind,name,size,public_key,key_id,expires_at}',
         '{subscription_secret}'),
        ('postrider_ingest', 'UPDATE', '{expires_at}',
         '{subscription_secret}'),
        ('postrider_ingest', 'UPDATE',
         '{url,event_types,state,state_reason,ordering,on_dead,'
         'older_signature,max_attempts,max_in_flight,retry_base_ms,'
         'retry_cap_ms,timeout_ms,rate_per_second,circuit_after,headers,tls_ca,'
         'tls_certificate,filter,filter_weight,version,updated_at}',
         '{subscription}'),
        ('postrider_ingest', 'UPDATE',
         '{rest,wake_at,entered_at,rate_at,circuit,circuit_opens,failures,'
         'slowed_to}',
         '{turn}'),
        ('postrider_ingest', 'UPDATE', '{named}', '{event}'),
        ('postrider_ingest', 'UPDATE',
         '{lane_id,finished_at,generation,attempts,status,state,duration_us,'
         'dns_us,connect_us,tls_us,wait_us,receive_us,worker,remote}',
         '{delivery}'),
        ('postrider_ingest', 'UPDATE',
         '{head_id,head_event_no,tail_id,resume_id,resume_at,due_at,attempts}',
         '{lane}'),
        ('postrider_ingest', 'UPDATE', '{state,finished_at}', '{replay_job}'),
        ('postrider_ingest', 'DELETE', '{}',
         '{subscription_pattern,subscription_secret,lane,dead_letter,replay}'),
        ('postrider_ingest', 'USAGE', '{}', '{position,subscription_id_seq}'),
        ('postrider_dispatch', 'SELECT', '{}',
         '{schema_migration,subscription,subscription_secret,'
         'subscription_test,turn,lane,replay,'
         'replay_job,event,delivery,other_attempt,dead_letter,cancelling,retention,'
         'retention_late,subscription_pattern,operation,operation_backlog,'
         'history_count,history_progress,history_tally}'),
        ('postrider_dispatch', 'SELECT', '{id,name}', '{tenant}'),
        ('postrider_dispatch', 'SELECT',
         '{number,at,actor,tenant_id,action,subject,detail}', '{audit}'),
        ('postrider_dispatch', 'INSERT', '{}',
         '{lane,replay,delivery,other_attempt,dead_letter,cancelling,'
         'retention_late,operation_backlog,history_count,history_tally}'),
        ('postrider_dispatch', 'INSERT',
         '{actor,tenant_id,action,subject,detail}', '{audit}'),
        ('postrider_dispatch', 'UPDATE',
         '{state,state_reason,version,updated_at}', '{subscription}'),
        ('postrider_dispatch', 'UPDATE',
         '{expires_at,taken_by,finished_at,started_at,duration_us,status,ended,'
         'remote,reason,dns_us,connect_us,tls_us,wait_us,receive_us,headers,'
         'excerpt}', '{subscription_test}'),
        ('postrider_dispatch', 'UPDATE',
         '{rest,wake_at,entered_at,rate_at,circuit,circuit_opens,failures,'
         'due_from,leased_from,swept_at,slowed_to,slowed_at}', '{turn}'),
        ('postrider_dispatch', 'UPDATE',
         '{lane_id,finished_at,generation,attempts,status,state,duration_us,'
         'dns_us,connect_us,tls_us,wait_us,receive_us,worker,remote}',
         '{delivery}'),
        ('postrider_dispatch', 'UPDATE',
         '{head_id,head_event_no,tail_id,resume_id,resume_at,due_at,'
         'lease_until,lease_token,look_at,leased_at,attempts,lease_worker}',
         '{lane}'),
        ('postrider_dispatch', 'UPDATE',
         '{reached,examined,replayed,refused,state,next_step_at,finished_at}',
         '{replay_job}'),
        ('postrider_dispatch', 'UPDATE', '{look_at,due_from,after_asset}',
         '{cancelling}'),
        ('postrider_dispatch', 'UPDATE', '{event_no,late_from}',
         '{retention}'),
        ('postrider_dispatch', 'UPDATE',
         '{audit_number,died_in,dead_id,dead_at,backlog_id,backlog_at}',
         '{operation}'),
        ('postrider_dispatch', 'UPDATE',
         '{delivered,failed,dead,attempt_times,delivery_times}',
         '{history_count}'),
        ('postrider_dispatch', 'UPDATE',
         '{counted_until,watched_at,watched_xid,minutes_from,quarters_from,tried}',
         '{history_progress}'),
        ('postrider_dispatch', 'UPDATE', '{body}', '{event}'),
        ('postrider_dispatch', 'DELETE', '{}',
         '{subscription_test,lane,replay,delivery,other_attempt,dead_letter,cancelling,'
         'retention_late,operation_backlog,history_count,history_tally}'),
        ('postrider_dispatch', 'USAGE', '{}', '{position}'),
        ('postrider_reader', 'SELECT', '{}',
         '{schema_migration,deliveries,assets,backlog,dead_letters,'
         'endpoint_health,stuck,replay,replay_job,cancelling,retention,'
         'retention_late,history,history_progress,history_reach}'),
        ('postrider_reader', 'SELECT',
         '{delivery_id,started_at,duration_us,generation,attempt,status,ended,'
         'worker,remote,reason,dns_us,connect_us,tls_us,wait_us,receive_us}',
         '{attempt}'),
        ('postrider_reader', 'SELECT',
         '{subscription_id,tenant_id,asked_at,expires_at,event_id,taken_by,'
         'finished_at,started_at,duration_us,status,ended,remote,reason,dns_us,'
         'connect_us,tls_us,wait_us,receive_us}', '{subscription_test}'),
        ('postrider_reader', 'SELECT',
         '{number,at,actor,source,tenant_id,action,subject,hash}', '{audit}')
), used (role, functions) AS (
    VALUES
        ('postrider_ingest',
         '{why,until,by_index,in_flight_limit,event_payload,histogram_sum,'
         'histogram_ms,histogram_json}'::text[]),
        ('postrider_dispatch',
         '{in_flight_limit,rfc3339,operation_event,event_payload,event_values,'
         'histogram_bin,histogram,histogram_sum}'),
        ('postrider_reader',
         '{why,until,by_index,in_flight_limit,histogram_ms}')
), missing AS (
    SELECT w.role, w.privilege, w.columns, c.relkind, c.relname
      FROM wanted w
      JOIN pg_roles r ON r.rolname = w.role
      JOIN pg_namespace n ON n.nspname = 'postrider'
      JOIN pg_class c ON c.relnamespace = n.oid
                     AND c.relname = ANY (w.relations)
     WHERE CASE
               WHEN c.relkind = 'S' THEN
                   NOT has_sequence_privilege(r.oid, c.oid, w.privilege)
               WHEN w.columns = '{}' THEN
                   NOT has_table_privilege(r.oid, c.oid, w.privilege)
               ELSE EXISTS (
                   SELECT
                     FROM pg_attribute a
                    WHERE a.attrelid = c.oid
                      AND a.attname = ANY (w.columns)
                      AND NOT has_column_privilege(r.oid, c.oid, a.attnum,
                                                   w.privilege))
           END
)
SELECT format('GRANT USAGE ON SCHEMA postrider TO %I', r.rolname) AS remedy
  FROM pg_roles r
  JOIN pg_namespace n ON n.nspname = 'postrider'
 WHERE r.rolname IN ('postrider_ingest', 'postrider_dispatch',
                     'postrider_reader')
   AND NOT has_schema_privilege(r.oid, n.oid, 'USAGE')
UNION ALL
SELECT format('GRANT %s%s ON %s%s TO %I',
              privilege,
              ' (' || nullif(array_to_string(columns, ', '), '') || ')',
              CASE WHEN relkind = 'S' THEN 'SEQUENCE ' ELSE '' END,
              string_agg('postrider.' || relname, ', ' ORDER BY relname),
              role)
  FROM missing
 GROUP BY role, privilege, columns, relkind
UNION ALL
SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I',
              string_agg('postrider.' || quote_ident(p.proname), ', '
                         ORDER BY p.proname),
              u.role)
  FROM used u
  JOIN pg_roles r ON r.rolname = u.role
  JOIN pg_namespace n ON n.nspname = 'postrider'
  JOIN pg_proc p ON p.pronamespace = n.oid
                AND p.proname = ANY (u.functions)
 WHERE NOT has_function_privilege(r.oid, p.oid, 'EXECUTE')
 GROUP BY u.role
 ORDER BY remedy;
