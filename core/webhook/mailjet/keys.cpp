// Who may post events of Mailjet: an entry of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::webhook {

std::vector<config::KeyEntry> mailjet_keys() {
  return {config::KeyEntry{"bounce.mailjet_secret_files", "MAILROOM_BOUNCE_MAILJET_SECRET_FILES", "",
                           "files with the secret that the URL of the events of Mailjet has, or its login",
                           config::secrets_of("mailjet")}
              .list()};
}

}  // namespace mailroom::webhook
