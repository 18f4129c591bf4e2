// A mail of a message that is made again, for show --rendered and record.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "cmd/terminal/context.hpp"
#include "compose/sent_mail.hpp"

namespace mailroom::cmd {

/// A mail on record, and what it is now.
struct RenderedMail {
  compose::SentMail sent{};
  std::optional<compose::RemadeMail> made{};
  std::string problem{};  ///< why it cannot be made; empty if it can
  std::string
      difference{};  ///< why it may differ from that on record; empty if it does not, or no hash is on record

  bool is_same() const { return made && made->is_same(sent); }
};

/// Makes the mails of `message` again; of that to `address` alone, if that is not empty. None if
/// none was accepted, or may have been. Throws Error(configuration) as `mailroom send` does.
std::vector<RenderedMail> render_sent_mails(Context& context, db::Connection& connection,
                                            std::int64_t message, const std::string& address);

/// What is on record of these mails, without making them.
std::vector<compose::SentMail> sent_mails_to(db::Connection& connection, std::int64_t message,
                                             const std::string& address);

nlohmann::ordered_json rendered_json(const RenderedMail& mail);

/// Whether the mail is the one on record, in a sentence.
std::string verdict_on(const RenderedMail& mail);

}  // namespace mailroom::cmd
