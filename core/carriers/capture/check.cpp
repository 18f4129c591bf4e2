// What doctor says of a configuration that captures mails.

#include <fmt/format.h>

#include "base/printable.hpp"
#include "carriers/capture/carrier.hpp"

namespace mailroom::capture {

std::vector<carriers::SinkFinding> check_capture(const config::RelayPath& path,
                                                 const mail::ConfiguredMail& /*mail*/) {
  const MaildirWriter maildir(capture_directory(path.targets.front()));
  return {
      {.level = carriers::SinkFinding::Level::warning,
       .reason = fmt::format("mails are kept in {}, and nobody gets them", shown_text(maildir.directory())),
       .hint = "that is for development: name a relay in send.relay",
       .endpoint = std::string(capture_sink)}};
}

}  // namespace mailroom::capture
