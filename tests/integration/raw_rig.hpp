// Raw mails in a database whose mails leave by a relay.
#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <string>
#include <string_view>

#include "base/encoded_text.hpp"
#include "integration/bounce_rig.hpp"
#include "support/catch.hpp"

namespace mailroom::test {

inline const std::string raw_mail =
    "From: Shop <shop@shop.example>\r\nTo: Ada <ada@mail.example>\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n"
    "Message-ID: <17@shop.example>\r\n\r\n.a dot\r\n..two\r\nblanks at the end  \r\n.\r\n\r\n";

/// `'\x46…'`, as SQL has the bytes.
inline std::string bytea_literal(std::string_view bytes) {
  std::string text = "'\\x";
  for (const char c : bytes)
    text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text + "'::bytea";
}

struct RawRig : BounceRig {
  /// Its mails leave one after the other.
  RawRig() { environment["MAILROOM_SEND_CONNECTIONS"] = "1"; }
  /// Asks for a raw mail to these addresses, which have line feeds between them. Returns its id.
  std::int64_t submit(const std::string& raw, const std::string& recipients = "ada@mail.example",
                      const std::string& return_path = "shop@shop.example", const std::string& more = {}) {
    return value<std::int64_t>(
        *connection, fmt::format("SELECT id FROM mailroom_submit(ARRAY['{}'], ARRAY[E'{}'], ARRAY[{}]{})",
                                 return_path, recipients, bytea_literal(raw), more));
  }
  /// Mails what is due by `to`, and returns what that relay has taken.
  std::vector<TakenMail> send_by(TestRelay& to) {
    environment["MAILROOM_SEND_RELAY"] = to.url();
    const auto sent = run({"send", "--once"});
    INFO(sent.errors);
    // 8: some were rejected.
    CHECK((sent.status == 0 || sent.status == 8));
    return to.taken();
  }
  std::vector<TakenMail> send() { return send_by(relay); }
  /// `ada@mail.example accepted: 250 ok`, a line for each recipient.
  std::string outcomes(std::int64_t message) {
    return value<std::string>(
        *connection,
        fmt::format(
            "SELECT string_agg(recipient || ' ' || state || coalesce(': ' || reply, ''), E'\\n' ORDER BY token) "
            "FROM mailroom_message_status({})",
            message));
  }
};

}  // namespace mailroom::test
