#define _GNU_SOURCE
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "core/seal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory with this text; its name goes to `path`. */
static int
make_file(char *path, size_t room, const uint8_t *data, size_t size)
{
	int fd = memfd_create("ring", MFD_CLOEXEC);

	assert(fd >= 0 && fchmod(fd, 0600) == 0);
	assert(write(fd, data, size) == (ssize_t)size);
	(void)snprintf(path, room, "/proc/self/fd/%d", fd);
	return fd;
}

/* A ring is as many lines as it has keys, which are all found by their ids. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	int fd = make_file(path, sizeof(path), data, size);
	struct seal_ring ring;
	struct err err;

	if (seal_ring_read(&ring, path, &err) != 0) {
		assert(err.code == ERR_BROKEN);
		assert(ring.n == 0);
	} else {
		assert(ring.n >= 1 && ring.n <= SEAL_KEYS_MAX);
		assert(size == ring.n * 65 || size == ring.n * 65 - 1);
		for (size_t i = 0; i < ring.n; i++)
			assert(seal_ring_find(&ring, ring.keys[i].id) ==
			       &ring.keys[i]);
	}
	seal_ring_fini(&ring);
	(void)close(fd);
	return 0;
}
