// Chooses by the key how much of a value is masked.

#include "cmd/config/shown_setting.hpp"

#include "base/secret_text.hpp"
#include "config/key_table.hpp"
#include "db/conninfo.hpp"

namespace mailroom::cmd {

std::string shown(const config::SettingValue& value) {
  switch (config::find_key(value.key)->secrecy) {
    case config::Secrecy::connection_string:
      return value.text.empty() ? "" : db::redact_conninfo(value.text);
    case config::Secrecy::url:
      return without_url_passwords(value.text);
    case config::Secrecy::command:
      return without_passwords(value.text);
    case config::Secrecy::name:
      return without_secrets(value.text);
    case config::Secrecy::none:
    case config::Secrecy::key:
      break;
  }
  return value.is_secret && !value.text.empty() ? "***" : value.text;
}

}  // namespace mailroom::cmd
