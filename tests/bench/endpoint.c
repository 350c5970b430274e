/*
 * endpoint: a subscriber's web server, and a publisher at an even pace.
 *
 *   endpoint DELAY_MS
 *
 * It answers 200 to each event, DELAY_MS after it came, and says on which port.
 * It obeys lines on standard input, and answers each with a line:
 *
 *   count                                       how many events came so far
 *   post PORT KEY CONNECTIONS RATE EVENTS       post to ingest, RATE a second
 *                                               (0: as fast as it answers), and
 *                                               wait until all have come
 *
 * Whoever posts and receives in one process needs no other's clock.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 8192, EVENTS = 512, BODY = 985, GIVE_UP_S = 60 };

struct conn {
	int fd;
	bool posts; /* else it is a subscriber's */
	bool is_closed; /* while an answer waited */
	size_t n; /* the event that it posts */
	size_t len;
	struct conn *next; /* of those that are idle */
	char buf[BUFFER];
};

/* What is answered later, in order. */
struct later {
	struct conn *conn;
	double at;
};

static int poll_fd, listen_fd;
static double delay;
static struct later *queue; /* a ring of `room` */
static size_t head, queued, room;
static uint64_t came;

/* The run under way; nothing while events is 0. */
static struct {
	size_t events, begun, accepted, received;
	double start, rate, ended, most_late;
	double *posted, *taken, *seen; /* when, by event */
	char key[128];
	struct conn *idle;
} run;

static void
give_up(const char *why)
{
	perror(why);
	exit(1);
}

static double
now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void
watch(int fd, void *what)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = what };

	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
		give_up("epoll_ctl");
}

static struct conn *
conn_new(int fd, bool posts)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	int yes = 1;

	if (conn == NULL)
		give_up("out of memory");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	conn->fd = fd;
	conn->posts = posts;
	watch(fd, conn);
	return conn;
}

/* A message is small: the socket takes all of it. */
static void
conn_send(const struct conn *conn, const char *text, size_t len)
{
	if (send(conn->fd, text, len, MSG_NOSIGNAL) != (ssize_t)len &&
	    errno != EPIPE && errno != ECONNRESET)
		give_up("send");
}

/* -- posting -- */

static size_t
message_write(char *out, size_t size, size_t n)
{
	char body[BODY + 1];
	int len = snprintf(body, sizeof(body),
	    "{\"id\":\"p%d_%010zu\",\"type\":\"reading\",\"asset\":\"a%zu\","
	    "\"data\":{\"n\":%zu,\"note\":\"",
	    (int)run.start, n, n % 10000, n);

	memset(body + len, 'x', sizeof(body) - (size_t)len);
	memcpy(body + BODY - 3, "\"}}", 4);
	return (size_t)snprintf(out, size,
	    "POST /v1/events HTTP/1.1\r\nHost: localhost\r\n"
	    "Authorization: Bearer %s\r\n"
	    "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
	    run.key, BODY, body);
}

/* Post what is due, as far as connections are idle. */
static void
post_due(void)
{
	char text[BUFFER];

	while (run.begun < run.events && run.idle != NULL) {
		struct conn *conn = run.idle;
		double time = now();
		double due = run.rate > 0
		                 ? run.start + (double)run.begun / run.rate
		                 : time;

		if (due > time)
			return;
		if (time - due > run.most_late)
			run.most_late = time - due;
		run.idle = conn->next;
		conn->n = run.begun++;
		run.posted[conn->n] = due;
		conn_send(
		    conn, text, message_write(text, sizeof(text), conn->n));
	}
}

static void
on_accepted(struct conn *conn)
{
	if (strncmp(conn->buf, "HTTP/1.1 202 ", 13) != 0) {
		(void)fprintf(stderr, "endpoint: %s\n", conn->buf);
		exit(1);
	}
	run.taken[conn->n] = now();
	run.accepted++;
	conn->next = run.idle;
	run.idle = conn;
}

/* -- receiving -- */

static void
answer(const struct conn *conn)
{
	static const char text[] =
	    "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

	conn_send(conn, text, sizeof(text) - 1);
}

static void
answer_later(struct conn *conn)
{
	if (queued == room)
		give_up("too many requests at once");
	queue[(head + queued++) % room] = (struct later){ conn, now() + delay };
}

static void
answer_due(void)
{
	while (queued > 0 && queue[head].at <= now()) {
		struct conn *conn = queue[head].conn;

		if (conn->is_closed)
			free(conn);
		else
			answer(conn);
		head = (head + 1) % room;
		queued--;
	}
}

static void
on_event(struct conn *conn)
{
	const char *text = strstr(conn->buf, "\"n\":");
	size_t n = text == NULL ? SIZE_MAX : strtoul(text + 4, NULL, 10);

	came++;
	if (n < run.events && run.seen[n] == 0) {
		run.seen[n] = now();
		run.received++;
	}
	if (delay > 0)
		answer_later(conn);
	else
		answer(conn);
}

static void
on_listener(void)
{
	int fd;

	while ((fd = accept4(
		    listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		(void)conn_new(fd, false);
}

/* -- both -- */

/* Of the message at the start of the buffer; 0 while it is not all there. */
static size_t
message_length(const struct conn *conn)
{
	const char *end = strstr(conn->buf, "\r\n\r\n");
	const char *length = strcasestr(conn->buf, "\r\ncontent-length:");
	size_t len;

	if (end == NULL)
		return 0;
	len = (size_t)(end + 4 - conn->buf);
	if (length != NULL && length < end)
		len += strtoul(length + 17, NULL, 10);
	return len <= conn->len ? len : 0;
}

static void
conn_close(struct conn *conn)
{
	if (conn->posts)
		give_up("ingest closed a connection");
	(void)close(conn->fd);
	conn->is_closed = true;
	for (size_t i = 0; i < queued; i++)
		if (queue[(head + i) % room].conn == conn)
			return;
	free(conn);
}

static void
on_conn(struct conn *conn)
{
	ssize_t got =
	    recv(conn->fd, conn->buf + conn->len, BUFFER - 1 - conn->len, 0);
	size_t len;

	if (got <= 0) {
		if (got == 0 || errno != EAGAIN)
			conn_close(conn);
		return;
	}
	conn->len += (size_t)got;
	conn->buf[conn->len] = '\0';
	while ((len = message_length(conn)) > 0) {
		if (conn->posts)
			on_accepted(conn);
		else
			on_event(conn);
		conn->len -= len;
		memmove(conn->buf, conn->buf + len, conn->len + 1);
	}
}

/* -- orders -- */

static void
begin(unsigned port, long connections, double rate, size_t events)
{
	struct sockaddr_in ingest = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };

	run.posted = calloc(events, sizeof(double));
	run.taken = calloc(events, sizeof(double));
	run.seen = calloc(events, sizeof(double));
	if (run.posted == NULL || run.taken == NULL || run.seen == NULL)
		give_up("out of memory");
	for (long i = 0; i < connections; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		struct conn *conn;

		if (fd < 0 || connect(fd, (struct sockaddr *)&ingest,
				  sizeof(ingest)) != 0)
			give_up("connect");
		(void)fcntl(fd, F_SETFL, O_NONBLOCK);
		conn = conn_new(fd, true);
		conn->next = run.idle;
		run.idle = conn;
	}
	run.rate = rate;
	run.start = now();
	run.ended = run.start + GIVE_UP_S +
	            (rate > 0 ? (double)events / rate : GIVE_UP_S);
	run.events = events;
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Between two times of each event, in milliseconds. */
static void
report_part(const char *name, const double *from, const double *to)
{
	double *ms = calloc(run.events, sizeof(double));

	if (ms == NULL)
		give_up("out of memory");
	for (size_t i = 0; i < run.events; i++)
		ms[i] = (to[i] - from[i]) * 1000;
	qsort(ms, run.events, sizeof(double), by_size);
	(void)printf("\"%s_p50_ms\": %.3f, \"%s_p99_ms\": %.3f, "
		     "\"%s_most_ms\": %.3f, ",
	    name, ms[run.events / 2], name, ms[run.events * 99 / 100], name,
	    ms[run.events - 1]);
	free(ms);
}

static void
report(void)
{
	if (run.received < run.events) {
		(void)fprintf(stderr, "endpoint: %zu of %zu events came\n",
		    run.received, run.events);
		exit(1);
	}
	(void)printf("{");
	report_part("accepted", run.posted, run.taken);
	report_part("received", run.taken, run.seen);
	report_part("posted", run.posted, run.seen);
	(void)printf("\"late_ms\": %.3f, \"seconds\": %.3f}\n",
	    run.most_late * 1000, now() - run.start);
	free(run.posted);
	free(run.taken);
	free(run.seen);
	while (run.idle != NULL) {
		struct conn *conn = run.idle;

		run.idle = conn->next;
		(void)close(conn->fd);
		free(conn);
	}
	memset(&run, 0, sizeof(run));
}

static void
on_order(void)
{
	char line[512];
	ssize_t got = read(STDIN_FILENO, line, sizeof(line) - 1);
	unsigned port;
	long connections;
	double rate;
	size_t events;

	if (got <= 0)
		exit(0);
	line[got] = '\0';
	if (strcmp(line, "count\n") == 0)
		(void)printf("%ju\n", (uintmax_t)came);
	else if (sscanf(line, "post %u %127s %ld %lf %zu", &port, run.key,
		     &connections, &rate, &events) == 5)
		begin(port, connections, rate, events);
	else
		give_up("what is not an order");
}

/* Until something happens, or is due. */
static void
turn(void)
{
	struct epoll_event events[EVENTS];
	double wait = 1, time = now();
	struct timespec most;
	int n;

	if (run.begun < run.events && run.rate > 0 && run.idle != NULL)
		wait = run.start + (double)run.begun / run.rate - time;
	if (queued > 0 && queue[head].at - time < wait)
		wait = queue[head].at - time;
	if (wait < 0)
		wait = 0;
	most.tv_sec = (time_t)wait;
	most.tv_nsec = (long)((wait - (double)most.tv_sec) * 1e9);
	n = epoll_pwait2(poll_fd, events, EVENTS, &most, NULL);
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr == &listen_fd)
			on_listener();
		else if (events[i].data.ptr == &poll_fd)
			on_order();
		else
			on_conn(events[i].data.ptr);
	}
	answer_due();
	post_due();
	if (run.events > 0 &&
	    (run.received == run.events || now() > run.ended) &&
	    run.accepted == run.begun)
		report();
}

int
main(int argc, char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET,
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(here);
	struct rlimit files;

	if (argc != 2)
		give_up("usage: endpoint DELAY_MS");
	delay = strtod(argv[1], NULL) / 1000;
	(void)getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	room = 1 << 20;
	queue = calloc(room, sizeof(*queue));
	poll_fd = epoll_create1(EPOLL_CLOEXEC);
	listen_fd =
	    socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (queue == NULL || poll_fd < 0 || listen_fd < 0 ||
	    bind(listen_fd, (struct sockaddr *)&here, len) != 0 ||
	    listen(listen_fd, 4096) != 0 ||
	    getsockname(listen_fd, (struct sockaddr *)&here, &len) != 0)
		give_up("endpoint");
	watch(listen_fd, &listen_fd);
	watch(STDIN_FILENO, &poll_fd);
	(void)printf("%d\n", ntohs(here.sin_port));
	for (;;)
		turn();
}
