# mailroom_embed_page(INPUT OUTPUT): writes OUTPUT, a C++ file that holds the page INPUT, and the hashes of its style and
# its script for a Content-Security-Policy.

set(MAILROOM_PAGE_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/write_page.cmake")

function(mailroom_embed_page input output)
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -D "INPUT=${input}" -D "OUTPUT=${output}" -P "${MAILROOM_PAGE_SCRIPT}"
    DEPENDS "${input}" "${MAILROOM_PAGE_SCRIPT}"
    COMMENT "embedding the page of mails"
    VERBATIM)
endfunction()
