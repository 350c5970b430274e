"""All that the programs' roles may do: whoever grants more writes it down here."""

ALL = "*"  # every column that COLUMNS has

# Every table and view, so that a new column is thought about.
COLUMNS = {
    "api_key": "id tenant_id role name hash created_at expires_at revoked_at last_used_at",
    "assets": "subscription_id tenant asset delivery_id event_id type accepted_at state why until"
              " attempts behind replays dead_reason due_at leased_at lease_until lease_worker",
    "attempt": "delivery_id generation attempt started_at duration_us status ended worker remote"
               " reason dns_us connect_us tls_us wait_us receive_us headers excerpt",
    "audit": "id at actor tenant_id action subject detail number source hash",
    "audit_head": "is_only number hash at",
    "backlog": "subscription_id tenant url why until first_due_at oldest_accepted_at due later"
               " held in_flight in_flight_limit rate_per_second",
    "cancelling": "subscription_id look_at due_from after_asset",
    "dead_letter": "delivery_id subscription_id died_at reason died_in",
    "dead_letters": "delivery_id event_id tenant subscription_id url type asset generation"
                    " attempts status reason accepted_at died_at is_purged",
    "deliveries": "id event_id tenant subscription_id type asset state why until behind"
                  " generation attempts status accepted_at finished_at due_at lease_until"
                  " lease_worker is_purged",
    "delivery": "id event_no subscription_id lane_id finished_at generation attempts status state"
                " duration_us dns_us connect_us tls_us wait_us receive_us worker remote",
    "endpoint_health": "subscription_id tenant url state state_reason circuit probe_at failures"
                       " success last_error last_error_at later dead in_flight in_flight_limit"
                       " rate_per_second slowed_to slowed_until",
    "event": "event_no tenant_id accepted_at fan_out event_id type asset fingerprint body named",
    "history": "seconds at tenant_id tenant subscription_id delivered failed dead success"
               " attempt_p50 attempt_p95 attempt_p99 delivery_p50 delivery_p95 delivery_p99",
    "history_count": "subscription_id seconds at tenant_id delivered failed dead attempt_times"
                     " delivery_times",
    "history_progress": "is_only counted_until watched_at watched_xid minutes_from quarters_from"
                        " tried",
    "history_reach": "until",
    "history_tally": "recorded_at verdict subscription_ids attempt_us delivery_us",
    "lane": "id subscription_id head_id tail_id head_event_no due_at lease_until lease_token"
            " attempts asset lease_worker look_at leased_at resume_id resume_at",
    "operation": "is_only audit_number died_in dead_id dead_at backlog_id backlog_at",
    "operation_backlog": "subscription_id told_at",
    "other_attempt": "delivery_id started_at duration_us generation attempt status ended worker"
                     " remote reason dns_us connect_us tls_us wait_us receive_us headers excerpt",
    "replay": "lane_id delivery_id",
    "replay_job": "id subscription_id what since until rate_per_second reached examined replayed"
                  " refused state created_by created_at created_in next_step_at finished_at",
    "retention": "what event_no late_from",
    "retention_late": "what due_at event_no",
    "schema_migration": "version name checksum applied_at",
    "stuck": "lane_id subscription_id asset delivery_id why attempts since",
    "subscription": "id tenant_id url event_types state state_reason ordering on_dead"
                    " older_signature max_attempts max_in_flight retry_base_ms retry_cap_ms"
                    " timeout_ms version created_at updated_at rate_per_second circuit_after"
                    " headers tls_ca tls_certificate filter filter_weight filter_path",
    "subscription_pattern": "tenant_id pattern subscription_id",
    "subscription_secret": "id subscription_id key_id nonce sealed created_at expires_at kind name"
                           " size public_key",
    "subscription_test": "subscription_id tenant_id asked_at expires_at event_id body taken_by"
                         " finished_at started_at duration_us status ended remote reason dns_us"
                         " connect_us tls_us wait_us receive_us headers excerpt",
    "tenant": "id name created_at",
    "turn": "subscription_id rest wake_at tenant_id rate_at circuit circuit_opens failures"
            " due_from leased_from swept_at entered_at slowed_to slowed_at",
}

VIEWS = ("assets", "attempt", "backlog", "dead_letters", "deliveries", "endpoint_health", "history",
         "history_reach", "stuck")

NOTE = "actor tenant_id action subject detail"

# Of each role: of each table, what it may with which columns.
TABLES = {
    "postrider_ingest": {
        **{view: {"SELECT": ALL} for view in VIEWS},
        "api_key": {"SELECT": ALL, "INSERT": "tenant_id role name hash expires_at",
                    "UPDATE": "revoked_at last_used_at"},
        "audit": {"SELECT": ALL, "INSERT": NOTE},
        "dead_letter": {"SELECT": ALL, "DELETE": ALL},
        "delivery": {"SELECT": ALL, "INSERT": ALL,
                     "UPDATE": "lane_id finished_at generation attempts status state duration_us"
                               " dns_us connect_us tls_us wait_us receive_us worker remote"},
        "event": {"SELECT": ALL, "INSERT": ALL, "UPDATE": "named"},
        "history_count": {"SELECT": ALL},
        "history_progress": {"SELECT": ALL},
        "lane": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL,
                 "UPDATE": "head_id head_event_no tail_id resume_id resume_at due_at attempts"},
        "other_attempt": {"INSERT": ALL},
        "replay": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL},
        "replay_job": {"SELECT": ALL, "INSERT": ALL, "UPDATE": "state finished_at"},
        "schema_migration": {"SELECT": ALL},
        "subscription": {
            "SELECT": ALL, "INSERT": ALL,
            "UPDATE": "url event_types state state_reason ordering on_dead older_signature"
                      " max_attempts max_in_flight retry_base_ms retry_cap_ms timeout_ms"
                      " rate_per_second circuit_after headers tls_ca tls_certificate filter"
                      " filter_weight version updated_at"},
        "subscription_pattern": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL},
        "subscription_secret": {
            "SELECT": "id subscription_id kind name size public_key key_id expires_at",
            "INSERT": ALL, "UPDATE": "expires_at", "DELETE": ALL},
        "subscription_test": {
            "SELECT": ALL, "INSERT": "subscription_id tenant_id event_id body",
            "UPDATE": "asked_at expires_at event_id body taken_by finished_at started_at"
                      " duration_us status ended remote reason dns_us connect_us tls_us wait_us"
                      " receive_us headers excerpt"},
        "tenant": {"SELECT": ALL, "INSERT": "name"},
        "turn": {"SELECT": ALL, "INSERT": ALL,
                 "UPDATE": "rest wake_at entered_at rate_at circuit circuit_opens failures"
                           " slowed_to"},
    },
    "postrider_dispatch": {
        "audit": {"SELECT": "number at actor tenant_id action subject detail", "INSERT": NOTE},
        "cancelling": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL,
                       "UPDATE": "look_at due_from after_asset"},
        "dead_letter": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL},
        "delivery": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL,
                     "UPDATE": "lane_id finished_at generation attempts status state duration_us"
                               " dns_us connect_us tls_us wait_us receive_us worker remote"},
        "event": {"SELECT": ALL, "UPDATE": "body"},
        "history_count": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL,
                          "UPDATE": "delivered failed dead attempt_times delivery_times"},
        "history_progress": {"SELECT": ALL,
                             "UPDATE": "counted_until watched_at watched_xid minutes_from"
                                       " quarters_from tried"},
        "history_tally": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL},
        "lane": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL,
                 "UPDATE": "head_id head_event_no tail_id resume_id resume_at due_at lease_until"
                           " lease_token look_at leased_at attempts lease_worker"},
        "operation": {"SELECT": ALL, "UPDATE": "audit_number died_in dead_id dead_at backlog_id"
                                               " backlog_at"},
        "operation_backlog": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL},
        "other_attempt": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL},
        "replay": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL},
        "replay_job": {"SELECT": ALL,
                       "UPDATE": "reached examined replayed refused state next_step_at"
                                 " finished_at"},
        "retention": {"SELECT": ALL, "UPDATE": "event_no late_from"},
        "retention_late": {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL},
        "schema_migration": {"SELECT": ALL},
        "subscription": {"SELECT": ALL, "UPDATE": "state state_reason version updated_at"},
        "subscription_pattern": {"SELECT": ALL},
        "subscription_secret": {"SELECT": ALL},
        "subscription_test": {
            "SELECT": ALL, "DELETE": ALL,
            "UPDATE": "expires_at taken_by finished_at started_at duration_us status ended remote"
                      " reason dns_us connect_us tls_us wait_us receive_us headers excerpt"},
        "tenant": {"SELECT": "id name"},
        "turn": {"SELECT": ALL,
                 "UPDATE": "rest wake_at entered_at rate_at circuit circuit_opens failures"
                           " due_from leased_from swept_at slowed_to slowed_at"},
    },
    "postrider_reader": {
        **{view: {"SELECT": ALL} for view in VIEWS},
        "attempt": {"SELECT": "delivery_id started_at duration_us generation attempt status ended"
                              " worker remote reason dns_us connect_us tls_us wait_us"
                              " receive_us"},
        "audit": {"SELECT": "number at actor source tenant_id action subject hash"},
        "cancelling": {"SELECT": ALL},
        "history_progress": {"SELECT": ALL},
        "replay": {"SELECT": ALL},
        "replay_job": {"SELECT": ALL},
        "retention": {"SELECT": ALL},
        "retention_late": {"SELECT": ALL},
        "schema_migration": {"SELECT": ALL},
        "subscription_test": {
            "SELECT": "subscription_id tenant_id asked_at expires_at event_id taken_by finished_at"
                      " started_at duration_us status ended remote reason dns_us connect_us tls_us"
                      " wait_us receive_us"},
    },
    "public": {},
}

# Sequences, and who may draw from each.
SEQUENCES = {
    "api_key_id_seq": set(),
    "audit_id_seq": set(),
    "position": {"postrider_ingest", "postrider_dispatch"},
    "replay_job_id_seq": set(),
    "subscription_id_seq": {"postrider_ingest"},
    "subscription_secret_id_seq": set(),
    "tenant_id_seq": set(),
}

# Functions, and who may call each.
FUNCTIONS = {
    "audit_append": set(),
    "audit_content": set(),
    "audit_link": set(),
    "audit_refuse": set(),
    "by_index": {"postrider_ingest", "postrider_reader"},
    "histogram": {"postrider_dispatch"},
    "histogram_bin": {"postrider_dispatch"},
    "histogram_json": {"postrider_ingest"},
    "histogram_ms": {"postrider_ingest", "postrider_reader"},
    "histogram_sum": {"postrider_ingest", "postrider_dispatch"},
    "event_payload": {"postrider_ingest", "postrider_dispatch"},
    "event_values": {"postrider_dispatch"},
    "in_flight_limit": {"postrider_ingest", "postrider_dispatch", "postrider_reader"},
    "operation_event": {"postrider_dispatch"},
    "refuse_another_body": set(),
    "rfc3339": {"postrider_dispatch"},
    "until": {"postrider_ingest", "postrider_reader"},
    "why": {"postrider_ingest", "postrider_reader"},
}

# Those that do what whoever calls them may not.
AS_OWNER = {"audit_link", "operation_event"}


def columns(role, table, privilege):
    """Which columns a role may treat so."""
    names = TABLES[role].get(table, {}).get(privilege, "")
    return set((COLUMNS[table] if names == ALL else names).split())


def expected(privileges=("SELECT", "INSERT", "UPDATE", "DELETE")):
    """All of it: {(role, privilege, table, column)}."""
    return {(role, privilege, table, column) for role in TABLES for table in COLUMNS
            for privilege in privileges for column in columns(role, table, privilege)}
