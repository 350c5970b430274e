/* server_rows: requests as bytes, and the status that they must get. */

#ifndef SERVER_ROWS_H
#define SERVER_ROWS_H

#include <stddef.h>

#include "server_world.h"

#define BYTES(text) text, sizeof(text) - 1
#define HEADER(line) BYTES(POST line "\r\nContent-Length: 2\r\n\r\nhi")
#define CHUNKS(text) BYTES(CHUNKED text)

struct row {
	const char *bytes;
	size_t len;
	int status;
};

static const struct row refused[] = {
	{ BYTES("GET / HTTP/1.1\n" HOST "\r\n"), 400 },
	{ BYTES("GET / HTTP/1.1\r\nHost: a\n\n"), 400 },
	{ BYTES("GET / HTTP/1.1\r" HOST "\r\n"), 400 },
	{ BYTES("GET / HTTP/1.1\r\n" HOST "\rZ" SECOND), 400 },
	{ BYTES("\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("\x16\x03\x01\x02\x00\x01"), 400 },
	{ BYTES("GET  / HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET / HTTP/1.1 \r\n" HOST "\r\n"), 400 },
	{ BYTES("GET /\r\n" HOST "\r\n"), 400 },
	{ BYTES(" GET / HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("G(T / HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("get / HTTP/1.1\r\n" HOST "\r\n"), 501 },
	{ BYTES("BREW / HTTP/1.1\r\n" HOST "\r\n"), 501 },
	{ BYTES("TRACE / HTTP/1.1\r\n" HOST "\r\n"), 501 },
	{ BYTES("CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n"), 501 },
	{ BYTES("GET / http/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET / HTTP/1.10\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET / HTTP/2.0\r\n" HOST "\r\n"), 505 },
	{ BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505 },
	{ BYTES("GET * HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET a:1 HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET ../x HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET /a#b HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET /a%0 HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET /a\\b HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET /\xc3\xa9 HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET /a\0b HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET http:///x HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET http://b/x HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET http://u@a/x HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET ftp://a/x HTTP/1.1\r\n" HOST "\r\n"), 400 },
	{ BYTES("GET / HTTP/1.1\r\n\r\n"), 400 },
	{ BYTES("GET / HTTP/1.1\r\n" HOST "hOST: a\r\n\r\n"), 400 },
	{ BYTES("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 400 },
	{ BYTES("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), 400 },
	{ BYTES("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400 },
	{ BYTES("GET / HTTP/1.1\r\nHost: a:80:1\r\n\r\n"), 400 },
	{ BYTES("GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"), 400 },
	{ BYTES("GET / HTTP/1.0\r\nHost: a b\r\n\r\n"), 400 },
	{ HEADER("X-A : b"), 400 },
	{ HEADER("X-A\t: b"), 400 },
	{ HEADER("X A: b"), 400 },
	{ HEADER("X-\xc3\xab: b"), 400 },
	{ HEADER(": b"), 400 },
	{ HEADER("nonsense"), 400 },
	{ HEADER("X-A: b\r\n c"), 400 },
	{ HEADER("X-A: b\r\n\t"), 400 },
	{ HEADER("X-A: b\0c"), 400 },
	{ HEADER("X-A: b\rc"), 400 },
	{ HEADER("X-A: b\x7f"), 400 },
	{ HEADER("Authorization: a\r\nauthorization: b"), 400 },
	{ HEADER("Content-Length: 2"), 400 },
	{ BYTES(POST "Content-Length: 12\r\nTransfer-Encoding: chunked\r\n"
		     "\r\n2\r\nhi\r\n0\r\n\r\n"),
	    400 },
	{ BYTES(POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"
		     "\r\n0\r\n\r\n"),
	    400 },
	{ HEADER("Expect: 200-ok"), 417 },
	{ BYTES(POST "\r\n"), 411 },
	{ BYTES(POST "Content-Length: +2\r\n\r\nhi" SECOND), 400 },
	{ BYTES(POST "Content-Length: 2, 2\r\n\r\nhi" SECOND), 400 },
	{ BYTES(POST "Content-Length: 0x2\r\n\r\nhi" SECOND), 400 },
	{ BYTES(POST "Content-Length:\r\n\r\nhi" SECOND), 400 },
	{ BYTES(POST "Content-Length: 65537\r\n\r\nhi" SECOND), 413 },
	{ BYTES(POST "Content-Length: 18446744073709551618\r\n\r\nhi"), 413 },
	{ BYTES(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 501 },
	{ BYTES(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
	    501 },
	{ BYTES(POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n" SECOND), 501 },
	{ BYTES("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400 },
	{ CHUNKS("0x2\r\nhi\r\n0\r\n\r\n"), 400 },
	{ CHUNKS("+2\r\nhi\r\n0\r\n\r\n"), 400 },
	{ CHUNKS("2 \r\nhi\r\n0\r\n\r\n"), 400 },
	{ CHUNKS("\r\nhi\r\n0\r\n\r\n"), 400 },
	{ CHUNKS("2\nhi\r\n0\r\n\r\n"), 400 },
	{ CHUNKS("2\rZhi\r\n0\r\n\r\n"), 400 },
	{ CHUNKS("2\r\nhiXX0\r\n\r\n" SECOND), 400 },
	{ CHUNKS("2\r\nhigh\r\n0\r\n\r\n"), 400 },
	{ CHUNKS("2;a=\x01\r\nhi\r\n0\r\n\r\n"), 400 },
	{ CHUNKS("2;a\rb\r\nhi\r\n0\r\n\r\n"), 400 },
	{ CHUNKS("00000000000000002\r\nhi\r\n0\r\n\r\n"), 400 },
	{ CHUNKS("10001\r\n"), 413 },
	{ CHUNKS("ffffffffffffffff\r\n"), 413 },
	{ CHUNKS("2\r\nhi\r\n-0\r\n\r\n" SECOND), 400 },
	{ CHUNKS("2\r\nhi\r\n0\r\nnonsense\r\n\r\n" SECOND), 400 },
	{ CHUNKS("2\r\nhi\r\n0\r\n: x\r\n\r\n" SECOND), 400 },
	{ CHUNKS("2\r\nhi\r\n0\r\nX : y\r\n\r\n" SECOND), 400 },
};

/* To be answered with 200, and the connection to stay open. */
static const struct row taken[] = {
	{ BYTES("GET / HTTP/1.1\r\n" HOST "\r\n"), 200 },
	{ BYTES("\r\nGET / HTTP/1.1\r\n" HOST "\r\n"), 200 },
	{ BYTES("GET /a%2fb/~c;d=1,2?e=%00&f HTTP/1.1\r\n" HOST "\r\n"), 200 },
	{ BYTES("GET http://A/x HTTP/1.1\r\n" HOST "\r\n"), 200 },
	{ BYTES("GET http://a?x HTTP/1.1\r\n" HOST "\r\n"), 200 },
	{ BYTES("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), 200 },
	{ BYTES("GET / HTTP/1.2\r\n" HOST "\r\n"), 200 },
	{ BYTES("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"), 200 },
	{ BYTES("GET / HTTP/1.1\r\nhOsT:a.b_c-d:\r\n\r\n"), 200 },
	{ BYTES("GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\n"
		"Upgrade: h2c\r\n\r\n"),
	    200 },
	{ BYTES(POST "Content-Length: \t 02 \t\r\n\r\nhi"), 200 },
	{ BYTES(POST "Content-Length: 0\r\n\r\n"), 200 },
	{ HEADER("X-Empty:"), 200 },
	{ HEADER("!#$%&'*+-.^_`|~9: \xff"), 200 },
	{ HEADER("X-A: 1\r\nX-A: 2"), 200 },
	{ HEADER("Expect: 100-Continue"), 200 },
	{ CHUNKS("0\r\n\r\n"), 200 },
	{ CHUNKS("0002\r\nhi\r\n000\r\n\r\n"), 200 },
	{ CHUNKS("2;x;y=1;z=\"a b;c\"\r\nhi\r\n0;y\r\n\r\n"), 200 },
	{ CHUNKS("2\r\nhi\r\n0\r\nX-Check: a\r\nHost: b\r\n\r\n"), 200 },
	{ BYTES(POST "Transfer-Encoding: Chunked\r\n\r\n1\r\nh\r\n"
		     "1\r\ni\r\n0\r\n\r\n"),
	    200 },
};

#endif
