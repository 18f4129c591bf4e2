// The settings of Resend: entries of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom {

std::vector<KeyEntry> resend_keys() {
  return {
      KeyEntry{"send.resend_key_file", "MAILROOM_SEND_RESEND_KEY_FILE", "",
               "file with the API key for resend://", option_of_relay(parse_path)}
          .secret_file("API key")
          .read_by("resend")
          .in_profiles(),
      KeyEntry{"send.resend_endpoint", "MAILROOM_SEND_RESEND_ENDPOINT", "",
               "URL of the API of Resend, if not https://api.resend.com, such as one for tests",
               option_of_relay()}
          .hides(Secrecy::url)
          .read_by("resend")
          .in_profiles(),
  };
}

}  // namespace mailroom
