// The keys of the pages for people without a terminal, a part of the table of keys.

#include "config/key_table.hpp"
#include "config/parse_value.hpp"

namespace mailroom::config {

std::vector<KeyEntry> desk_keys() {
  using namespace std::chrono_literals;
  return {
      KeyEntry{"desk.listen", "MAILROOM_DESK_LISTEN", "127.0.0.1:8026",
               "where desk serves its pages: an address and a port, or the path of a unix socket",
               into(&DeskSettings::listen, parse_listen_value)}
          .needs_restart()
          .option("desk", "--listen ADDRESS",
                  "serve the pages here: 127.0.0.1:8026, or the path of a unix socket"),
      KeyEntry{
          "desk.url", "MAILROOM_DESK_URL", "",
          "URL under which a proxy with TLS serves the pages, such as https://desk.example; without it they are for browsers of this host",
          as_written(&DeskSettings::url)}
          .needs_restart()
          .option("desk", "--url URL", "a proxy serves the pages under URL: https://desk.example")
          .like("https://desk.example"),
      KeyEntry{"desk.idle_timeout", "MAILROOM_DESK_IDLE_TIMEOUT", "30m",
               "a session ends after so long without a request, from 1m to 1d",
               into(&DeskSettings::idle_timeout, parse_interval, 1min, 24h)}
          .needs_restart(),
      KeyEntry{"desk.session_timeout", "MAILROOM_DESK_SESSION_TIMEOUT", "12h",
               "a session ends so long after the sign-in, from 1m to 7d",
               into(&DeskSettings::session_timeout, parse_interval, 1min, 24h * 7)}
          .needs_restart(),
  };
}

}  // namespace mailroom::config
