#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "command.h"
#include "core/seal.h"

#define SETTING(field)                                                         \
	.name = #field, .offset = offsetof(struct settings, field)

const struct conf_item settings_items[] = {
	{ SETTING(database), .kind = CONF_TEXT, .initial = "",
	    .help = "how to connect, as libpq takes it" },
	{ SETTING(database_role), .kind = CONF_TEXT,
	    .initial = "postrider_owner",
	    .help = "the role to act as, save for migrate; empty for none" },
	{ SETTING(secret_key_file), .kind = CONF_TEXT, .initial = "",
	    .help = "the keys of the stored secrets" },
	{ .name = NULL },
};

#define JSON                                                                   \
	{                                                                      \
		"json", NULL, false                                            \
	}

const struct command commands[] = {
	{ "migrate", "", "bring the database's schema to this version",
	    { { "status", NULL, false }, JSON }, cmd_migrate },
	{ "tenant create", "NAME", "make a tenant", { JSON },
	    cmd_tenant_create },
	{ "tenant list", "", "list the tenants", { JSON }, cmd_tenant_list },
	{ "key create", "",
	    "make an API key and show it once; an operator's has no tenant",
	    { { "role", "publisher|viewer|admin|operator", true },
		{ "tenant", "NAME", false }, { "name", "TEXT", false },
		{ "expires", "TIME", false }, JSON },
	    cmd_key_create },
	{ "key list", "", "list the keys",
	    { { "tenant", "NAME", false }, JSON }, cmd_key_list },
	{ "key revoke", "ID", "let a key open nothing from now on", { JSON },
	    cmd_key_revoke },
	{ "subscription list", "", "list a tenant's subscriptions",
	    { { "tenant", "NAME", true }, JSON }, cmd_subscription_list },
	{ "subscription pause", "ID",
	    "send it nothing more until it is resumed; it takes events",
	    { JSON }, cmd_subscription_pause },
	{ "subscription resume", "ID", "go on where it was paused", { JSON },
	    cmd_subscription_resume },
	{ "subscription disable", "ID",
	    "send it nothing more, and take no events for it", { JSON },
	    cmd_subscription_disable },
	{ "subscription enable", "ID",
	    "go on with what waits since it was disabled", { JSON },
	    cmd_subscription_enable },
	{ "subscription delete", "ID",
	    "give it up for ever, with all that waits for it", { JSON },
	    cmd_subscription_delete },
	{ "subscription rotate-secret", "ID",
	    "sign with a new secret, and for a while with the old ones",
	    { { "from", "FILE", false }, { "overlap", "SECONDS", false },
		JSON },
	    cmd_subscription_rotate_secret },
	{ "subscription rotate-signing-key", "ID",
	    "the same for the key of its Ed25519 signatures",
	    { { "from", "FILE", false }, { "overlap", "SECONDS", false },
		JSON },
	    cmd_subscription_rotate_key },
	{ "event send", "FILE",
	    "accept an event as ingest does, with the JSON of a file as its "
	    "data",
	    { { "tenant", "NAME", true }, { "type", "TYPE", true },
		{ "asset", "ASSET", false }, { "id", "ID", false },
		{ "subscription", "ID", false }, JSON },
	    cmd_event_send },
	{ "event get", "ID", "show an event and its deliveries",
	    { { "tenant", "NAME", true }, JSON }, cmd_event_get },
	{ "subscription test", "ID",
	    "send it a test event at once, and show what came back", { JSON },
	    cmd_subscription_test },
	{ "deliveries", "SUBSCRIPTION",
	    "list its deliveries, the newest first, without what was sent",
	    { { "state", "pending|delivering|retrying|delivered|dead|cancelled",
		  false },
		{ "type", "TYPE", false }, { "asset", "ASSET", false },
		{ "event", "ID", false }, { "since", "TIME", false },
		{ "until", "TIME", false }, { "limit", "NUMBER", false },
		JSON },
	    cmd_deliveries },
	{ "retry", "SUBSCRIPTION DELIVERY",
	    "send a dead letter again, in its own place", { JSON }, cmd_retry },
	{ "discard", "SUBSCRIPTION DELIVERY", "give up a dead letter for good",
	    { JSON }, cmd_discard },
	{ "replay dead", "SUBSCRIPTION",
	    "send all its dead letters again, in the background",
	    { { "since", "TIME", false }, { "until", "TIME", false },
		{ "rate", "NUMBER", false }, { "wait", NULL, false }, JSON },
	    cmd_replay_dead },
	{ "replay events", "SUBSCRIPTION",
	    "send all that was accepted for it again, or at last",
	    { { "since", "TIME", true }, { "until", "TIME", false },
		{ "rate", "NUMBER", false }, { "wait", NULL, false }, JSON },
	    cmd_replay_events },
	{ "replay list", "SUBSCRIPTION",
	    "list its replays in the background, the newest first", { JSON },
	    cmd_replay_list },
	{ "replay cancel", "SUBSCRIPTION REPLAY",
	    "end a replay in the background where it is", { JSON },
	    cmd_replay_cancel },
	{ "audit list", "", "who changed what, the newest first",
	    { { "tenant", "NAME", false }, { "actor", "ACTOR", false },
		{ "action", "ACTION", false }, { "subject", "SUBJECT", false },
		{ "since", "TIME", false }, { "until", "TIME", false },
		{ "limit", "NUMBER", false }, JSON },
	    cmd_audit_list },
	{ "audit verify", "", "recompute the audit's chain",
	    { { "earlier", "HEAD", false }, JSON }, cmd_audit_verify },
	{ "keygen", "FILE",
	    "write a new key for the secrets at rest, or add it before others",
	    { { "add", NULL, false }, JSON }, cmd_keygen },
	{ "rekey", "", "seal all secrets anew, under the first key", { JSON },
	    cmd_rekey },
	{ "doctor", "", "look for what is wrong, and say how to mend it",
	    { JSON }, cmd_doctor },
	{ "status", "", "how it stands now, anew each second",
	    { { "once", NULL, false }, JSON }, cmd_status },
	{ "completion", "bash", "print what lets bash complete this command",
	    { { 0 } }, cmd_completion },
	{ "version", "", "print the version", { JSON }, cmd_version },
	{ "help", "", "print this", { { 0 } }, cmd_help },
	{ .words = NULL },
};

const struct command command_none = { "", "", "", { JSON }, cmd_none };

static enum status
help(const struct call *call, struct err *err)
{
	if (call->command == &command_none)
		return cmd_help(call, err);
	(void)fputs("postrider ", stdout);
	command_usage(stdout, call->command);
	(void)printf("    %s\n", call->command->help);
	return STATUS_DONE;
}

/* For -n: what is wrong with the settings already before they are used. */
static enum status
check_settings(const struct settings *settings, struct err *err)
{
	struct seal_ring ring;
	int result = 0;

	if (settings->secret_key_file[0] != '\0')
		result = seal_ring_read(&ring, settings->secret_key_file, err);
	seal_ring_fini(&ring);
	if (result == 0)
		return STATUS_DONE;
	(void)err_wrap(err, "secret_key_file");
	return STATUS_USAGE;
}

/* With its settings loaded. */
static enum status
run(const struct call *call, const struct conf_args *args, struct err *err)
{
	if (args->help)
		return help(call, err);
	if (args->version)
		return cmd_version(call, err);
	if (command_check(call, err) != 0)
		return STATUS_USAGE;
	if (args->check)
		return check_settings(&call->settings, err);
	return call->command->run(call, err);
}

static enum status
load_and_run(struct call *call, int argc, char *const argv[], char **rest)
{
	struct conf_args args;
	struct err err = { .code = ERR_NONE };
	enum status status = STATUS_USAGE;
	int nrest;

	if (command_find(call, argc, argv, &err) == 0 &&
	    command_parse(call, argc, argv, rest, &nrest, &err) == 0 &&
	    conf_load(
		&call->settings, settings_items, nrest, rest, &args, &err) == 0)
		status = run(call, &args, &err);
	conf_fini(&call->settings, settings_items);
	if (status == STATUS_FAILED || status == STATUS_USAGE)
		(void)fprintf(stderr, "postrider: %s\n", err.text);
	return status;
}

int
main(int argc, char *argv[])
{
	struct call call = { .command = NULL };
	enum status status;
	char **rest;

	rest = calloc((size_t)argc + 1, sizeof(*rest));
	if (rest == NULL)
		return STATUS_FAILED;
	status = load_and_run(&call, argc, argv, rest);
	free(rest);
	/* A full disk or a closed pipe must not pass for success. */
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("postrider: standard output");
		return STATUS_FAILED;
	}
	return (int)status;
}
