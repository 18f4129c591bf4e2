// Who may post events of Mailgun: an entry of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::webhook {

std::vector<config::KeyEntry> mailgun_keys() {
  return {config::KeyEntry{"bounce.mailgun_secret_files", "MAILROOM_BOUNCE_MAILGUN_SECRET_FILES", "",
                           "files with the signing key for webhooks of Mailgun; several for several accounts",
                           config::secrets_of("mailgun")}
              .list()};
}

}  // namespace mailroom::webhook
