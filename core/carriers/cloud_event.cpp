// Derives all attributes from the line, so that a repeated line is the same event.

#include "carriers/cloud_event.hpp"

#include "base/clock.hpp"
#include "base/encoded_text.hpp"

namespace mailroom::carriers {

std::vector<std::pair<std::string, std::string>> cloud_event_attributes(const delivery::Message& message,
                                                                        const std::string& source) {
  if (source.empty()) return {};
  return {
      {"specversion", "1.0"},     {"id", message.message_id},
      {"source", source},         {"type", "mailroom." + message.action},
      {"subject", message.queue}, {"time", moment_text(Moment(std::chrono::seconds(message.created_at)))}};
}

std::string cloud_event_header_value(std::string_view value) {
  return percent_encoded(value, R"(!#$&'()*+,-./:;<=>?@[\]^_`{|}~)");
}

}  // namespace mailroom::carriers
