// Who may post events of Postmark: an entry of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::webhook {

std::vector<config::KeyEntry> postmark_keys() {
  return {config::KeyEntry{
      "bounce.postmark_secret_files", "MAILROOM_BOUNCE_POSTMARK_SECRET_FILES", "",
      "files with the secret that the URL of a webhook of Postmark has, or its login; several while a secret is replaced",
      config::secrets_of("postmark")}
              .list()};
}

}  // namespace mailroom::webhook
