// Derives all attributes from the line, so that a repeated line is the same event.

#include "carriers/cloud_event.hpp"

#include <fmt/format.h>
#include <iterator>

#include "base/clock.hpp"

namespace mailroom {

std::vector<std::pair<std::string, std::string>> cloud_event_attributes(const Message& message,
                                                                        const std::string& source) {
  if (source.empty()) return {};
  return {
      {"specversion", "1.0"},     {"id", message.message_id},
      {"source", source},         {"type", "mailroom." + message.action},
      {"subject", message.queue}, {"time", moment_text(Moment(std::chrono::seconds(message.created_at)))}};
}

std::string cloud_event_header_value(std::string_view value) {
  std::string text;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f && c != '"' && c != '%') {
      text += c;
    } else {
      fmt::format_to(std::back_inserter(text), "%{:02X}", byte);
    }
  }
  return text;
}

}  // namespace mailroom
