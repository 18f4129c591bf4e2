// Who may post events of Brevo: an entry of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::webhook {

std::vector<config::KeyEntry> brevo_keys() {
  return {
      config::KeyEntry{"bounce.brevo_secret_files", "MAILROOM_BOUNCE_BREVO_SECRET_FILES", "",
                       "files with the secret that the URL of a webhook of Brevo has, or its login or token",
                       config::secrets_of("brevo")}
          .list()};
}

}  // namespace mailroom::webhook
