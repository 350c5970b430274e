#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/notify.h"

void
notify_send(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len;
	int fd;

	if (path == NULL || (path[0] != '/' && path[0] != '@'))
		return;
	len = strlen(path);
	if (len >= sizeof(to.sun_path))
		return;
	memcpy(to.sun_path, path, len);
	if (to.sun_path[0] == '@') /* the abstract namespace */
		to.sun_path[0] = '\0';

	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	/* A manager that does not listen is not our failure. */
	(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL,
	    (const struct sockaddr *)&to,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	(void)close(fd);
}
