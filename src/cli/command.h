/*
 * command: one thing that the operator asks for.
 *
 * A command is one entry of commands[] and one function in cmd_NAME.c.  After
 * its words come, in any order, its operand, its own options (--tenant NAME or
 * --tenant=NAME) and the settings that conf.h reads.  Options and settings may
 * stand before it too, there as --NAME=VALUE only: which words are values is
 * not known before the command is.
 */

#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/conf.h"

struct err;

enum status {
	STATUS_DONE = 0,
	STATUS_FAILED = 1,
	STATUS_USAGE = 2, /* the command line or the settings are wrong */
	STATUS_PENDING = 3, /* migrate --status: there are migrations to run */
};

enum { COMMAND_OPTIONS = 8 };

struct settings {
	char *database;
	char *database_role;
	char *secret_key_file;
};

extern const struct conf_item settings_items[];

struct command_option {
	const char *name; /* without dashes; NULL ends */
	const char *value; /* what it takes, "NAME"; NULL for a flag */
	bool is_required;
};

struct call;

struct command {
	const char *words; /* one, or two: "key create"; NULL ends */
	/* As the help shows them: "" for none, "ID", "SUBSCRIPTION DELIVERY". */
	const char *operand;
	const char *help; /* one line */
	struct command_option options[COMMAND_OPTIONS + 1];
	/* On STATUS_FAILED and STATUS_USAGE `*err` is filled. */
	enum status (*run)(const struct call *call, struct err *err);
};

extern const struct command commands[];

/* What runs where no command is named: its words are "". */
extern const struct command command_none;

/* A command as it was given. */
struct call {
	const struct command *command;
	int at; /* where in argv its words begin */
	struct settings settings;
	const char *operand, *second;
	const char *surplus; /* an operand that it does not take */
	const char *values[COMMAND_OPTIONS]; /* "" for a flag given */
};

/* Set the command of `call` and where it stands. */
int command_find(
    struct call *call, int argc, char *const argv[], struct err *err);

/*
 * Read what stands around the command's words into `call`.  What is neither
 * operand nor option of the command is left for conf_load(): it goes to `rest`,
 * which has room for argc + 1 and begins with argv[0]; `*nrest` says how many.
 */
int command_parse(struct call *call, int argc, char *const argv[], char **rest,
    int *nrest, struct err *err);

/* 0 if the command has the operand and the options that it cannot do without,
 * and no operand more. */
int command_check(const struct call *call, struct err *err);

/* What was given to an option of the command; NULL if it was not. */
const char *command_value(const struct call *call, const char *option);

/* Fill `*err` with what the command is to be given.  Returns STATUS_USAGE. */
enum status command_misused(
    const struct call *call, struct err *err, const char *why);

/* Read the operand, the second one, as an id.  Returns STATUS_DONE, or fills
 * `*err`. */
enum status command_id(const struct call *call, int64_t *id, struct err *err);
enum status command_second_id(
    const struct call *call, int64_t *id, struct err *err);

/* Read an option that is a time; -1 if it was not given.  Returns as the last. */
enum status command_time(
    const struct call *call, const char *option, usec_t *out, struct err *err);

/* Read an option that is a number from 1 to `max`; `*out` stays as it is if it was
 * not given.  Returns as the last. */
enum status command_number(const struct call *call, const char *option, int max,
    int *out, struct err *err);

/* The command in one line, as "key revoke ID [--json]". */
void command_usage(FILE *out, const struct command *command);

enum status cmd_audit_list(const struct call *call, struct err *err);
enum status cmd_audit_verify(const struct call *call, struct err *err);
enum status cmd_completion(const struct call *call, struct err *err);
enum status cmd_deliveries(const struct call *call, struct err *err);
enum status cmd_doctor(const struct call *call, struct err *err);
enum status cmd_event_get(const struct call *call, struct err *err);
enum status cmd_event_send(const struct call *call, struct err *err);
enum status cmd_help(const struct call *call, struct err *err);
enum status cmd_key_create(const struct call *call, struct err *err);
enum status cmd_key_list(const struct call *call, struct err *err);
enum status cmd_key_revoke(const struct call *call, struct err *err);
enum status cmd_keygen(const struct call *call, struct err *err);
enum status cmd_migrate(const struct call *call, struct err *err);
enum status cmd_none(const struct call *call, struct err *err);
enum status cmd_rekey(const struct call *call, struct err *err);
enum status cmd_replay_cancel(const struct call *call, struct err *err);
enum status cmd_replay_dead(const struct call *call, struct err *err);
enum status cmd_discard(const struct call *call, struct err *err);
enum status cmd_replay_events(const struct call *call, struct err *err);
enum status cmd_replay_list(const struct call *call, struct err *err);
enum status cmd_retry(const struct call *call, struct err *err);
enum status cmd_status(const struct call *call, struct err *err);
enum status cmd_subscription_delete(const struct call *call, struct err *err);
enum status cmd_subscription_disable(const struct call *call, struct err *err);
enum status cmd_subscription_enable(const struct call *call, struct err *err);
enum status cmd_subscription_list(const struct call *call, struct err *err);
enum status cmd_subscription_pause(const struct call *call, struct err *err);
enum status cmd_subscription_resume(const struct call *call, struct err *err);
enum status cmd_subscription_rotate_key(
    const struct call *call, struct err *err);
enum status cmd_subscription_rotate_secret(
    const struct call *call, struct err *err);
enum status cmd_subscription_test(const struct call *call, struct err *err);
enum status cmd_tenant_create(const struct call *call, struct err *err);
enum status cmd_tenant_list(const struct call *call, struct err *err);
enum status cmd_version(const struct call *call, struct err *err);

#endif
