// Who may post events of Resend: an entry of the table of keys, with which this file is compiled.

#include "config/key_table.hpp"

namespace mailroom::webhook {

std::vector<config::KeyEntry> resend_keys() {
  return {config::KeyEntry{
      "bounce.resend_secret_files", "MAILROOM_BOUNCE_RESEND_SECRET_FILES", "",
      "files with the signing secret of a webhook of Resend: whsec_ and base64; several while a secret is replaced",
      config::into(&config::BounceSettings::resend_secret_files, config::parse_paths)}
              .list()};
}

}  // namespace mailroom::webhook
