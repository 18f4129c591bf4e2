// Chooses by the key how much of a value is masked.

#include "cmd/config/shown_setting.hpp"

#include "base/secret_text.hpp"
#include "config/key_table.hpp"
#include "db/conninfo.hpp"

namespace mailroom {

std::string shown(const SettingValue& value) {
  switch (find_key(value.key)->secrecy) {
    case Secrecy::connection_string:
      return value.text.empty() ? "" : redact_conninfo(value.text);
    case Secrecy::url:
      return without_url_passwords(value.text);
    case Secrecy::command:
      return without_passwords(value.text);
    case Secrecy::name:
      return without_secrets(value.text);
    case Secrecy::none:
    case Secrecy::key:
      break;
  }
  return value.is_secret && !value.text.empty() ? "***" : value.text;
}

}  // namespace mailroom
