/*
 * multi: libcurl's multi interface alone, as fast as it posts.
 *
 *   multi URL CONNECTIONS SECONDS
 *
 * Each connection posts 1 KiB, signed anew, whenever its last post was
 * answered: what sending costs without a database.  Prints JSON.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#include <curl/curl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum { BODY = 1024, EVENTS = 256, MAC = 32, SAFETY_MS = 100 };

struct post {
	CURL *easy;
	struct curl_slist *headers;
};

static CURLM *multi;
static int poll_fd;
static long wait_ms = -1;
static char body[BODY];
static uint64_t done, failed;

static void
give_up(const char *why)
{
	(void)fprintf(stderr, "multi: %s\n", why);
	exit(1);
}

static double
seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

static double
now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static size_t
discard(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	(void)arg;
	return size * n;
}

static int
on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
	struct epoll_event wanted = { .data.fd = fd };

	(void)easy;
	(void)arg;
	if (what == CURL_POLL_REMOVE) {
		(void)epoll_ctl(poll_fd, EPOLL_CTL_DEL, fd, NULL);
		return 0;
	}
	if ((what & CURL_POLL_IN) != 0)
		wanted.events |= EPOLLIN;
	if ((what & CURL_POLL_OUT) != 0)
		wanted.events |= EPOLLOUT;
	if (epoll_ctl(poll_fd, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd,
		&wanted) != 0)
		return -1;
	return curl_multi_assign(multi, fd, &poll_fd) == CURLM_OK ? 0 : -1;
}

static int
on_timer(CURLM *unused, long ms, void *arg)
{
	(void)unused;
	(void)arg;
	wait_ms = ms;
	return 0;
}

/* Sign, and start. */
static void
post_start(struct post *post)
{
	static const char key[] = "a key of thirty-two octets, or so";
	unsigned char mac[MAC];
	unsigned len = sizeof(mac);
	char header[128] = "webhook-signature: v1,";

	if (HMAC(EVP_sha256(), key, sizeof(key) - 1,
		(const unsigned char *)body, sizeof(body), mac, &len) == NULL)
		give_up("HMAC failed");
	(void)EVP_EncodeBlock(
	    (unsigned char *)header + strlen(header), mac, (int)len);
	curl_slist_free_all(post->headers);
	post->headers = curl_slist_append(NULL, header);
	post->headers =
	    curl_slist_append(post->headers, "Content-Type: application/json");
	post->headers = curl_slist_append(post->headers, "Expect:");
	(void)curl_easy_setopt(post->easy, CURLOPT_HTTPHEADER, post->headers);
	if (curl_multi_add_handle(multi, post->easy) != CURLM_OK)
		give_up("a post does not start");
}

static void
post_init(struct post *post, const char *url)
{
	CURL *easy = curl_easy_init();

	if (easy == NULL)
		give_up("out of memory");
	post->easy = easy;
	(void)curl_easy_setopt(easy, CURLOPT_URL, url);
	(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body);
	(void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)BODY);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, discard);
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(easy, CURLOPT_PRIVATE, (void *)post);
	post_start(post);
}

/* What is answered is posted anew. */
static void
finish(void)
{
	CURLMsg *message;
	int left;

	while ((message = curl_multi_info_read(multi, &left)) != NULL) {
		CURL *easy = message->easy_handle;
		CURLcode result = message->data.result;
		struct post *post;
		long status = 0;

		(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&post);
		(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
		done++;
		if (result != CURLE_OK || status != 200)
			failed++;
		(void)curl_multi_remove_handle(multi, easy);
		post_start(post);
	}
}

static void
turn(void)
{
	struct epoll_event events[EVENTS];
	int running;
	int most =
	    wait_ms < 0 || wait_ms > SAFETY_MS ? SAFETY_MS : (int)wait_ms;
	int n = epoll_wait(poll_fd, events, EVENTS, most);

	if (n <= 0 || wait_ms == 0)
		(void)curl_multi_socket_action(
		    multi, CURL_SOCKET_TIMEOUT, 0, &running);
	for (int i = 0; i < n; i++) {
		int what = 0;

		if ((events[i].events & EPOLLIN) != 0)
			what |= CURL_CSELECT_IN;
		if ((events[i].events & EPOLLOUT) != 0)
			what |= CURL_CSELECT_OUT;
		if ((events[i].events & (EPOLLERR | EPOLLHUP)) != 0)
			what |= CURL_CSELECT_ERR;
		(void)curl_multi_socket_action(
		    multi, events[i].data.fd, what, &running);
	}
	finish();
}

static void
report(double took)
{
	struct rusage used;
	double processor;

	(void)getrusage(RUSAGE_SELF, &used);
	processor = seconds(&used.ru_utime) + seconds(&used.ru_stime);
	(void)printf("{\"requests\": %" PRIu64 ", \"failed\": %" PRIu64
		     ", \"seconds\": %.3f, \"sender_us\": %.1f}\n",
	    done, failed, took, processor * 1e6 / (double)(done ? done : 1));
}

int
main(int argc, char **argv)
{
	double began, end;
	long connections;
	struct post *posts;

	if (argc != 4)
		give_up("usage: multi URL CONNECTIONS SECONDS");
	connections = strtol(argv[2], NULL, 10);
	posts = calloc((size_t)connections, sizeof(*posts));
	poll_fd = epoll_create1(0);
	(void)curl_global_init(CURL_GLOBAL_ALL);
	multi = curl_multi_init();
	if (posts == NULL || poll_fd < 0 || multi == NULL)
		give_up("out of memory");
	memset(body, 'x', sizeof(body));
	(void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, connections);
	(void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	(void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
	for (long i = 0; i < connections; i++)
		post_init(&posts[i], argv[1]);
	began = now();
	end = began + strtod(argv[3], NULL);
	while (now() < end)
		turn();
	report(now() - began);
	return 0;
}
