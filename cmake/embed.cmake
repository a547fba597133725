# Writes a source that defines a file's text: cmake -DINPUT=… -DOUTPUT=… -DNAMESPACE=… -DNAME=… -P embed.cmake
file(READ ${INPUT} text)
if(text MATCHES "\\)embedded\"")
  message(FATAL_ERROR "${INPUT} holds the mark that ends its embedded text")
endif()
# By its size: counting the characters of a long text would take more steps than compilers allow.
file(WRITE ${OUTPUT} "#include <string_view>\n\nnamespace ${NAMESPACE} {\n\
static constexpr char k_${NAME}[] = R\"embedded(${text})embedded\";\n\
extern const std::string_view ${NAME};\n\
constinit const std::string_view ${NAME}(k_${NAME}, sizeof k_${NAME} - 1);\n}\n")
