declare module "@mailchimp/mailchimp_marketing";
