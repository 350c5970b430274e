#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "command.h"

#define SETTING(field)                                                         \
	.name = #field, .offset = offsetof(struct settings, field)

const struct conf_item settings_items[] = {
	{ SETTING(database), .kind = CONF_TEXT, .initial = "",
	    .help = "how to connect, as libpq takes it" },
	{ SETTING(database_role), .kind = CONF_TEXT,
	    .initial = "postrider_owner",
	    .help = "the role to act as, save for migrate; empty for none" },
	{ SETTING(secret_key_file), .kind = CONF_TEXT, .initial = "",
	    .help = "the key of the stored secrets, for doctor" },
	{ .name = NULL },
};

#define JSON                                                                   \
	{                                                                      \
		"json", NULL                                                   \
	}

const struct command commands[] = {
	{ "migrate", "", "bring the database's schema to this version",
	    { { "status", NULL }, JSON }, cmd_migrate },
	{ "tenant create", "NAME", "make a tenant", { JSON },
	    cmd_tenant_create },
	{ "tenant list", "", "list the tenants", { JSON }, cmd_tenant_list },
	{ "key create", "",
	    "make an API key (publisher, admin, operator) and show it once",
	    { { "tenant", "NAME" }, { "role", "ROLE" }, { "name", "TEXT" },
		JSON },
	    cmd_key_create },
	{ "key list", "", "list the keys", { { "tenant", "NAME" }, JSON },
	    cmd_key_list },
	{ "key revoke", "ID", "let a key open nothing from now on", { JSON },
	    cmd_key_revoke },
	{ "subscription list", "", "list a tenant's subscriptions",
	    { { "tenant", "NAME" }, JSON }, cmd_subscription_list },
	{ "keygen", "FILE", "write a new key for the secrets at rest",
	    { { 0 } }, cmd_keygen },
	{ "doctor", "", "look for what is wrong, and say how to mend it",
	    { JSON }, cmd_doctor },
	{ "version", "", "print the version", { { 0 } }, cmd_version },
	{ "help", "", "print this", { { 0 } }, cmd_help },
	{ .words = NULL },
};

static enum status
complain(const struct err *err, enum status status)
{
	(void)fprintf(stderr, "postrider: %s\n", err->text);
	return status;
}

/* With its settings loaded. */
static enum status
run(const struct call *call, const struct conf_args *args, struct err *err)
{
	enum status status;

	if (args->help) {
		(void)fputs("postrider ", stdout);
		command_usage(stdout, call->command);
		(void)printf("    %s\n", call->command->help);
		return STATUS_DONE;
	}
	if (args->version)
		return cmd_version(call, err);
	if (args->check)
		return STATUS_DONE;
	status = call->command->run(call, err);
	if (status == STATUS_FAILED || status == STATUS_USAGE)
		return complain(err, status);
	return status;
}

static enum status
load_and_run(struct call *call, int argc, char *const argv[], char **rest)
{
	struct conf_args args;
	struct err err = { .code = ERR_NONE };
	enum status status = STATUS_USAGE;
	int nrest;

	if (command_parse(call, argc, argv, rest, &nrest, &err) != 0 ||
	    conf_load(
		&call->settings, settings_items, nrest, rest, &args, &err) != 0)
		(void)complain(&err, status);
	else
		status = run(call, &args, &err);
	conf_fini(&call->settings, settings_items);
	return status;
}

int
main(int argc, char *argv[])
{
	struct call call = { .command = command_find(argc, argv) };
	enum status status;
	char **rest;

	if (argc > 1 && strcmp(argv[1], "--help") == 0)
		return (int)cmd_help(&call, NULL);
	if (argc > 1 && strcmp(argv[1], "--version") == 0)
		return (int)cmd_version(&call, NULL);
	if (call.command == NULL) {
		(void)fprintf(stderr,
		    "postrider: %s: no such command; see `postrider help`\n",
		    argc > 1 ? argv[1] : "nothing");
		return STATUS_USAGE;
	}
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
