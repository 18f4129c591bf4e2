// Who may post events of SendGrid: an entry of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::webhook {

std::vector<config::KeyEntry> sendgrid_keys() {
  return {config::KeyEntry{
      "bounce.sendgrid_key_files", "MAILROOM_BOUNCE_SENDGRID_KEY_FILES", "",
      "files with the verification key of a signed event webhook of SendGrid, which is public",
      config::secrets_of("sendgrid")}
              .list()};
}

}  // namespace mailroom::webhook
