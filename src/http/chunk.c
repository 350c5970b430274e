#include "base/buf.h"
#include "chunk.h"

static struct refusal
refuse(int status, const char *detail)
{
	return (struct refusal){ status, detail };
}

/* The value of a hexadecimal digit; -1 if it is none. */
static int
digit(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static struct refusal
expect(struct chunk *chunk, unsigned char c, char wanted, enum chunk_state next)
{
	if (c != (unsigned char)wanted)
		return refuse(400, "a chunk or its size does not end in CRLF");
	chunk->state = next;
	return ACCEPTED;
}

static struct refusal
read_size(struct chunk *chunk, unsigned char c)
{
	int value = digit(c);

	if (value >= 0 && chunk->digits < CHUNK_DIGITS_MAX) {
		chunk->left = chunk->left << 4 | (unsigned)value;
		chunk->digits++;
		chunk->state = CHUNK_DIGITS;
		return ACCEPTED;
	}
	if (chunk->state == CHUNK_SIZE || (c != '\r' && c != ';'))
		return refuse(400, "a chunk's size is no number");
	chunk->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
	return ACCEPTED;
}

/* What is read only to be dropped. */
static struct refusal
read_extra(struct chunk *chunk, unsigned char c, enum chunk_state next)
{
	if (c == '\r') {
		chunk->state = next;
		return ACCEPTED;
	}
	if (head_is_control(c))
		return refuse(400, "a control character in a chunked body");
	if (chunk->extra++ == CHUNK_EXTRA_MAX)
		return refuse(
		    400, "too much beside the data in a chunked body");
	return ACCEPTED;
}

static struct refusal
read_name(struct chunk *chunk, unsigned char c)
{
	if (c == ':' && chunk->state == CHUNK_NAME)
		chunk->state = CHUNK_VALUE;
	else if (head_is_token(c))
		chunk->state = CHUNK_NAME;
	else
		return refuse(400, "a trailer's name is not a token");
	return read_extra(chunk, c, CHUNK_VALUE_LF);
}

static struct refusal
end_size(struct chunk *chunk, unsigned char c, size_t room)
{
	enum chunk_state next = chunk->left == 0 ? CHUNK_LINE : CHUNK_DATA;

	if (chunk->left > room)
		return refuse(413, "the body is too large");
	chunk->digits = 0;
	return expect(chunk, c, '\n', next);
}

static struct refusal
read_octet(struct chunk *chunk, unsigned char c, size_t room)
{
	switch (chunk->state) {
	case CHUNK_SIZE:
	case CHUNK_DIGITS:
		return read_size(chunk, c);
	case CHUNK_EXTENSION:
		return read_extra(chunk, c, CHUNK_SIZE_LF);
	case CHUNK_SIZE_LF:
		return end_size(chunk, c, room);
	case CHUNK_DATA_CR:
		return expect(chunk, c, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		return expect(chunk, c, '\n', CHUNK_SIZE);
	case CHUNK_LINE:
		if (c == '\r')
			return expect(chunk, c, '\r', CHUNK_LAST_LF);
		return read_name(chunk, c);
	case CHUNK_NAME:
		return read_name(chunk, c);
	case CHUNK_VALUE:
		return read_extra(chunk, c, CHUNK_VALUE_LF);
	case CHUNK_VALUE_LF:
		return expect(chunk, c, '\n', CHUNK_LINE);
	case CHUNK_LAST_LF:
		return expect(chunk, c, '\n', CHUNK_END);
	case CHUNK_DATA: /* taken in one piece by chunk_read() */
	case CHUNK_END:
		break;
	}
	return ACCEPTED;
}

static size_t
take_data(struct chunk *chunk, const char *bytes, size_t len, struct buf *body)
{
	size_t n = chunk->left < len ? (size_t)chunk->left : len;

	buf_add(body, bytes, n);
	chunk->left -= n;
	if (chunk->left == 0)
		chunk->state = CHUNK_DATA_CR;
	return n;
}

struct refusal
chunk_read(struct chunk *chunk, const char *bytes, size_t len, size_t *used,
    struct buf *body, size_t max)
{
	struct refusal refusal = ACCEPTED;
	size_t at = 0;

	while (at < len && chunk->state != CHUNK_END && refusal.status == 0) {
		if (chunk->state == CHUNK_DATA)
			at += take_data(chunk, bytes + at, len - at, body);
		else
			refusal = read_octet(
			    chunk, (unsigned char)bytes[at++], max - body->len);
	}
	*used = at;
	return refusal;
}
