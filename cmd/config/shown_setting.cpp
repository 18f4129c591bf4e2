// Chooses by the key how much of a value is masked.

#include "cmd/config/shown_setting.hpp"

#include "base/text.hpp"
#include "db/conninfo.hpp"

namespace mailroom {

std::string shown(const SettingValue& value) {
  if (value.key == "database.url") return value.text.empty() ? "" : redact_conninfo(value.text);
  if (value.key == "sink.to" || value.key == "sink.monitor" || value.key == "send.relay")
    return without_url_passwords(value.text);
  if (value.key == "sink.exec") return without_passwords(value.text);
  if (value.key == "collect.channel" || value.key == "collect.queue") return without_secrets(value.text);
  return value.is_secret && !value.text.empty() ? "***" : value.text;
}

}  // namespace mailroom
