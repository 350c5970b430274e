/*
 * dns_packet: what a name server says, for tests: right, wrong and worse.
 *
 * It writes its packets itself, since most of what is of interest here no
 * library would write.
 */

#ifndef TESTS_DNS_PACKET_H
#define TESTS_DNS_PACKET_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/buf.h"

enum {
	DNS_A = 1,
	DNS_CNAME = 5,
	DNS_AAAA = 28,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_REFUSED = 5,
	DNS_HEADER = 12,
	DNS_UDP_MAX = 512,
	DNS_CHAIN_MAX = 8,
};

/* What is wrong with an answer.  The first group comes before the good one,
 * and says 203.0.113.66; the second comes instead of it. */
enum dns_trick {
	DNS_HONEST,
	DNS_WRONG_ID,
	DNS_WRONG_QUESTION,
	DNS_WRONG_SOURCE, /* from another port */
	DNS_EMPTY, /* a datagram of no octets */
	DNS_SHORT, /* half a header */

	DNS_SILENT,
	DNS_LOOP, /* a compressed name that points at itself */
	DNS_GARBAGE,
	DNS_CUT, /* ends within a record */
	DNS_FOREIGN, /* the addresses of another name */
};

struct dns_record {
	const char *name; /* NULL ends */
	const char *a[40]; /* IPv4 addresses, NULL ends */
	const char *aaaa[8];
	const char *cname; /* whose addresses follow */
	int many; /* so many IPv4 addresses more, 192.0.2.1 and up */
	const char *later_a; /* instead, from the second question on */
	int error; /* DNS_SERVFAIL ... instead of an answer */
	int failures; /* so many of each family get it, then none; 0: all do */
	int delay_ms; /* of the answer to AAAA */
	enum dns_trick trick; /* of both families */
	enum dns_trick trick_aaaa;
	int is_silent_a, is_silent_aaaa, is_silent_tcp; /* never answers */
};

/* One question, as it came. */
struct dns_question {
	const unsigned char *octets;
	size_t len; /* of header and question */
	char name[256];
	int type;
	bool is_tcp;
};

static const struct dns_record *
dns_find(const struct dns_record *records, const char *name)
{
	const struct dns_record *at = records;

	while (at->name != NULL && strcasecmp(at->name, name) != 0)
		at++;
	return at->name != NULL ? at : NULL;
}

static void
dns_put_name(struct buf *out, const char *name)
{
	while (*name != '\0') {
		size_t len = strcspn(name, ".");
		unsigned char octet = (unsigned char)len;

		buf_add(out, &octet, 1);
		buf_add(out, name, len);
		name += len + (name[len] == '.');
	}
	buf_add(out, "", 1);
}

static void
dns_put(struct buf *out, const char *owner, int type, const void *octets,
    size_t len)
{
	unsigned char *head = (unsigned char *)out->data;

	dns_put_name(out, owner);
	buf_be16(out, (uint16_t)type);
	buf_be16(out, 1);
	buf_be32(out, 0); /* the TTL */
	buf_be16(out, (uint16_t)len);
	buf_add(out, octets, len);
	head = (unsigned char *)out->data;
	head[7]++;
}

static void
dns_put_address(struct buf *out, const char *owner, const char *text)
{
	unsigned char octets[16];
	bool is_v4 = inet_pton(AF_INET, text, octets) == 1;

	if (!is_v4)
		(void)inet_pton(AF_INET6, text, octets);
	dns_put(out, owner, is_v4 ? DNS_A : DNS_AAAA, octets, is_v4 ? 4 : 16);
}

static void
dns_put_addresses(struct buf *out, const struct dns_record *record,
    const char *owner, int type, int times)
{
	char text[24];
	const char *const *at = type == DNS_A ? record->a : record->aaaa;

	if (type == DNS_A && times > 1 && record->later_a != NULL) {
		dns_put_address(out, owner, record->later_a);
		return;
	}
	for (; *at != NULL; at++)
		dns_put_address(out, owner, *at);
	for (int i = 1; type == DNS_A && i <= record->many; i++) {
		(void)snprintf(text, sizeof(text), "192.0.2.%d", i);
		dns_put_address(out, owner, text);
	}
}

/* The aliases and what is at their end, as a recursive server tells. */
static void
dns_put_answer(struct buf *out, const struct dns_record *records,
    const struct dns_question *question, int times)
{
	const struct dns_record *record = dns_find(records, question->name);

	for (int i = 0; record != NULL && record->cname != NULL; i++) {
		struct buf target = { 0 };

		dns_put_name(&target, record->cname);
		dns_put(out, record->name, DNS_CNAME, target.data, target.len);
		buf_fini(&target);
		record =
		    i < DNS_CHAIN_MAX ? dns_find(records, record->cname) : NULL;
	}
	if (record != NULL)
		dns_put_addresses(
		    out, record, record->name, question->type, times);
}

static void
dns_begin(struct buf *out, const struct dns_question *question, int error)
{
	unsigned char *head;

	buf_clear(out);
	buf_add(out, question->octets, question->len);
	head = (unsigned char *)out->data;
	head[2] = 0x81; /* an answer; recursion was asked for */
	head[3] = (unsigned char)(0x80 | error);
	memset(head + 6, 0, 6);
}

/* What no datagram holds comes over TCP. */
static void
dns_truncate(struct buf *out, const struct dns_question *question)
{
	if (out->len <= DNS_UDP_MAX || question->is_tcp)
		return;
	dns_begin(out, question, 0);
	out->data[2] |= 0x02;
}

/* What comes before the good answer: one that says 203.0.113.66. */
static void
dns_spoof(
    struct buf *out, const struct dns_question *question, enum dns_trick trick)
{
	dns_begin(out, question, 0);
	dns_put_address(out, question->name,
	    question->type == DNS_A ? "203.0.113.66" : "2001:db8::66");
	if (trick == DNS_WRONG_ID)
		out->data[1] ^= 1;
	if (trick == DNS_WRONG_QUESTION)
		out->data[DNS_HEADER + 1] ^= 1;
	if (trick == DNS_EMPTY)
		out->len = 0;
	if (trick == DNS_SHORT)
		out->len = DNS_HEADER / 2;
}

/* Instead of the good answer. */
static void
dns_spoil(
    struct buf *out, const struct dns_question *question, enum dns_trick trick)
{
	unsigned char at = (unsigned char)out->len;

	if (trick == DNS_LOOP) {
		dns_begin(out, question, 0);
		at = (unsigned char)out->len;
		buf_add(out, (unsigned char[]){ 0xc0, at }, 2);
		buf_be16(out, (uint16_t)question->type);
		out->data[7] = 1;
	}
	if (trick == DNS_GARBAGE) {
		dns_begin(out, question, 0);
		out->data[7] = 3;
		for (int i = 0; i < 60; i++)
			buf_add(out,
			    (unsigned char[]){ (unsigned char)(i * 37) }, 1);
	}
	if (trick == DNS_CUT)
		out->len -= 2;
	if (trick == DNS_FOREIGN) {
		dns_begin(out, question, 0);
		dns_put_address(out, "other.test",
		    question->type == DNS_A ? "203.0.113.66" : "2001:db8::66");
	}
}

static bool
dns_is_silent(
    const struct dns_record *record, const struct dns_question *question)
{
	if (question->type == DNS_A ? record->is_silent_a
				    : record->is_silent_aaaa)
		return true;
	return question->is_tcp && record->is_silent_tcp;
}

static enum dns_trick
dns_trick_of(const struct dns_record *record, int type)
{
	if (record == NULL)
		return DNS_HONEST;
	if (type == DNS_AAAA && record->trick_aaaa != DNS_HONEST)
		return record->trick_aaaa;
	return record->trick;
}

/* Make the answer; nothing if there is to be none.  `times` it was asked. */
static void
dns_answer(struct buf *out, const struct dns_record *records,
    const struct dns_question *question, int times)
{
	const struct dns_record *record = dns_find(records, question->name);
	enum dns_trick trick = dns_trick_of(record, question->type);

	buf_clear(out);
	if (record == NULL) {
		dns_begin(out, question, DNS_NXDOMAIN);
		return;
	}
	if (dns_is_silent(record, question) || trick == DNS_SILENT)
		return;
	if (record->error != 0 &&
	    (record->failures == 0 || times <= record->failures)) {
		dns_begin(out, question, record->error);
		return;
	}
	dns_begin(out, question, 0);
	dns_put_answer(out, records, question, times);
	dns_spoil(out, question, trick);
	dns_truncate(out, question);
}

static int
dns_read(struct dns_question *out, const unsigned char *octets, size_t len,
    bool is_tcp)
{
	size_t at = DNS_HEADER, used = 0;

	*out = (struct dns_question){ .octets = octets, .is_tcp = is_tcp };
	while (at < len && octets[at] != 0) {
		if (used + octets[at] + 2 > sizeof(out->name))
			return -1;
		memcpy(out->name + used, octets + at + 1, octets[at]);
		used += octets[at];
		out->name[used++] = '.';
		at += octets[at] + 1u;
	}
	if (at + 5 > len || used == 0)
		return -1;
	out->name[used - 1] = '\0';
	out->type = octets[at + 1] << 8 | octets[at + 2];
	out->len = at + 5;
	return 0;
}

#endif
