// The URLs of relays, and where TLS is required.

#include "carriers/smtp/relay/relay.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace mailroom::smtp {
namespace {

const config::UrlForm relay_form{.subject = "the relay",
                                 .schemes = {{"smtp", 25}, {"smtps", 465}},
                                 .password_key = "send.password_file",
                                 .hint = "write it as smtp://host, smtp://user@host:587 or smtps://user@host",
                                 .has_path = false};

}  // namespace

RelayUrl parse_relay_url(std::string_view text) {
  if (text.empty()) throw Error(ExitCode::configuration, "a relay is missing", relay_form.hint);
  const auto url = config::parse_server_url(text, relay_form);
  const RelayUrl relay{url.servers.front(), url.scheme == "smtps", url.user};
  // RFC 8314, section 7.3: 465 is the port of submission over TLS.
  if (relay.implicit_tls || relay.port != 465) return relay;
  throw Error(ExitCode::configuration,
              fmt::format("the relay 'smtp://{}{}' has port 465, which speaks TLS from the first byte",
                          relay.user.empty() ? "" : "***@", relay.address()),
              "write it with smtps:// in place of smtp://");
}

bool requires_tls(const RelayUrl& url, const RelayOptions& options) {
  // RFC 8314, section 3: credentials never go over a connection without TLS, not even on this host: it may be
  // a tunnel.
  if (options.plaintext_for_tests && url.user.empty() && !url.implicit_tls) return false;
  return url.implicit_tls || options.tls_on_loopback || !url.user.empty() || !url.is_loopback();
}

}  // namespace mailroom::smtp
