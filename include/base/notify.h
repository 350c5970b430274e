/*
 * notify: tell the service manager how the program is, by sd_notify's datagram
 * protocol (sd_notify(3)); without NOTIFY_SOCKET in the environment it does
 * nothing.
 */

#ifndef BASE_NOTIFY_H
#define BASE_NOTIFY_H

/* `state` is lines such as "READY=1\nSTATUS=listening".  Best effort. */
void notify_send(const char *state);

#endif
