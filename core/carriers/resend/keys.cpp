// The settings of Resend: entries of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::resend {

std::vector<config::KeyEntry> keys() {
  return {
      config::KeyEntry{"send.resend_key_file", "MAILROOM_SEND_RESEND_KEY_FILE", "",
                       "file with the API key for resend://", config::option_of_relay(config::parse_path)}
          .secret_file("API key")
          .read_by("resend")
          .in_profiles(),
      config::KeyEntry{"send.resend_endpoint", "MAILROOM_SEND_RESEND_ENDPOINT", "",
                       "URL of the API of Resend, if not https://api.resend.com, such as one for tests",
                       config::option_of_relay()}
          .hides(config::Secrecy::url)
          .read_by("resend")
          .in_profiles(),
  };
}

}  // namespace mailroom::resend
