# Writes a source that defines a file's text: cmake -DINPUT=… -DOUTPUT=… -DNAMESPACE=… -DNAME=… -P embed.cmake
file(READ ${INPUT} text)
if(text MATCHES "\\)embedded\"")
  message(FATAL_ERROR "${INPUT} holds the mark that ends its embedded text")
endif()
file(WRITE ${OUTPUT} "#include <string_view>\n\nnamespace ${NAMESPACE} {\n\
extern const std::string_view ${NAME};\n\
constinit const std::string_view ${NAME} = R\"embedded(${text})embedded\";\n}\n")
